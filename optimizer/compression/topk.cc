#include <kolo/optimizer/compression/compression.h>

#include <fmt/format.h>

#include <cmath>

#include <kolo/core/base/error.h>
#include <kolo/core/graph/indexed_slices.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/indexing.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/ops/shapes.h>
#include <kolo/optimizer/error_feedback.h>

namespace kolo {
namespace {

class TopKCompression final : public Compression {
 public:
  explicit TopKCompression(double ratio) : ratio_(ratio) {}
  std::string name() const override { return fmt::format("topk({})", ratio_); }
  Outputs reduce(const Scope& s, std::span<const GradientPair> local,
                 GradientReducer& reducer) const override;

 private:
  // 0: the gradient travels as it is.
  std::int64_t count_of(const Output& gradient) const {
    const std::int64_t elements = gradient.shape().elements();
    const bool is_real = gradient.dtype() == DType::f32 || gradient.dtype() == DType::f64;
    const auto count = static_cast<std::int64_t>(std::ceil(ratio_ * static_cast<double>(elements)));
    return is_real && 2 * count <= elements ? count : 0;
  }
  double ratio_;
};

// One gradient of which the largest elements travel.
struct Thinned {
  std::size_t index;  // among the gradients
  Variable error;
  Output whole;  // [n], with what earlier steps have left out
  IndexedSlices largest;
};

Thinned thin(const Scope& s, const GradientPair& pair, std::size_t index, std::int64_t count) {
  const Shape flat{pair.gradient.shape().elements()};
  Thinned made{.index = index,
               .error = {},
               .whole = {},
               .largest = {.values = {}, .indices = {}, .dense_shape = flat}};
  made.error = detail::compression_state(s, pair.variable, "topk_error", flat, true);
  made.whole = add(s, reshape(s, pair.gradient, flat), made.error);
  made.largest.indices = top_k(s, abs(s, made.whole), count).indices;
  made.largest.values = gather(s, made.whole, made.largest.indices);
  return made;
}

Outputs TopKCompression::reduce(const Scope& s, std::span<const GradientPair> local,
                                GradientReducer& reducer) const {
  detail::check_linear(reducer, name());
  const Scope scope = s.name_scope("topk");
  GroupReduceInputs inputs{.gradients = {}, .names = {}};
  std::vector<std::size_t> as_they_are;
  std::vector<Thinned> thinned;
  for (std::size_t i = 0; i < local.size(); ++i) {
    if (const std::int64_t count = count_of(local[i].gradient); count > 0) {
      thinned.push_back(thin(scope, local[i], i, count));
      inputs.slices.push_back(thinned.back().largest);
      inputs.slice_names.push_back(local[i].variable.name());
    } else {
      as_they_are.push_back(i);
      inputs.gradients.push_back(local[i].gradient);
      inputs.names.push_back(local[i].variable.name());
    }
  }
  const GroupReduced reduced = reducer.reduce(scope, inputs);
  Outputs result(local.size());
  for (std::size_t k = 0; k < as_they_are.size(); ++k) result[as_they_are[k]] = reduced.gradients[k];
  for (std::size_t k = 0; k < thinned.size(); ++k) {
    const Thinned& each = thinned[k];
    const Output sum =
        detail::with_state_update(scope, to_dense(scope, reduced.slices[k]), [&](const Scope& inside) {
          return Operation(
              assign(inside, each.error, sub(inside, each.whole, to_dense(inside, each.largest))));
        });
    result[each.index] = reshape(scope, sum, local[each.index].gradient.shape());
  }
  return result;
}

}  // namespace

std::shared_ptr<const Compression> topk_compression(double ratio) {
  if (!(ratio > 0 && ratio <= 1))
    throw InvalidArgumentError("topk compression: ratio is {}; it must be above 0 and at most 1", ratio);
  return std::make_shared<TopKCompression>(ratio);
}

}  // namespace kolo
