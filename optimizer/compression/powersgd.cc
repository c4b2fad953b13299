#include <kolo/optimizer/compression/compression.h>

#include <fmt/format.h>

#include <algorithm>

#include <kolo/core/base/error.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/linalg.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/ops/random.h>
#include <kolo/core/ops/shapes.h>
#include <kolo/optimizer/error_feedback.h>

namespace kolo {
namespace {

// One gradient that travels as two factors.
struct Factored {
  std::size_t index;  // among the gradients
  Shape shape;        // as a matrix
  Variable error, q;
  Output matrix;  // with what earlier steps have left out
  Output p;
};

class PowerSgd final : public Compression {
 public:
  explicit PowerSgd(std::int64_t rank) : rank_(rank) {}
  std::string name() const override { return fmt::format("powersgd({})", rank_); }
  Outputs reduce(const Scope& s, std::span<const GradientPair> local,
                 GradientReducer& reducer) const override;

 private:
  std::int64_t rank_of(const GradientPair& pair) const;
  Factored first_factor(const Scope& s, const GradientPair& pair, std::size_t index) const;
  std::int64_t rank_;
};

Shape as_matrix(const Shape& shape) { return {shape.dim(0), shape.elements() / shape.dim(0)}; }

// 0: the gradient travels as it is.
std::int64_t PowerSgd::rank_of(const GradientPair& pair) const {
  const Shape& shape = pair.gradient.shape();
  const bool is_real = pair.gradient.dtype() == DType::f32 || pair.gradient.dtype() == DType::f64;
  if (!is_real || shape.rank() < 2 || shape.elements() == 0) return 0;
  const Shape matrix = as_matrix(shape);
  const std::int64_t rank = std::min({rank_, matrix.dim(0), matrix.dim(1)});
  return rank * (matrix.dim(0) + matrix.dim(1)) < shape.elements() ? rank : 0;
}

Factored PowerSgd::first_factor(const Scope& s, const GradientPair& pair, std::size_t index) const {
  Factored made{
      .index = index, .shape = as_matrix(pair.gradient.shape()), .error = {}, .q = {}, .matrix = {}, .p = {}};
  const Shape narrow{made.shape.dim(1), rank_of(pair)};
  made.error = detail::compression_state(s, pair.variable, "powersgd_error", made.shape, true);
  made.q = detail::compression_state(s, pair.variable, "powersgd_q", narrow, false, [&](const Scope& first) {
    return random_normal(first, pair.variable.dtype(), narrow, 0, 1, static_cast<std::int64_t>(index) + 1);
  });
  made.matrix = add(s, reshape(s, pair.gradient, made.shape), made.error);
  // The same span as the last step's factor; where that has lost a direction (a gradient of zeros) it gets
  // another one.
  made.p = matmul(s, made.matrix, orthogonalize(s, made.q));
  return made;
}

Outputs PowerSgd::reduce(const Scope& s, std::span<const GradientPair> local,
                         GradientReducer& reducer) const {
  detail::check_linear(reducer, name());
  const Scope scope = s.name_scope("powersgd");
  std::vector<Factored> factored;
  Outputs first;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < local.size(); ++i) {
    if (rank_of(local[i]) > 0) {
      factored.push_back(first_factor(scope, local[i], i));
      first.push_back(factored.back().p);
    } else {
      first.push_back(local[i].gradient);
    }
    names.push_back(local[i].variable.name());
  }
  Outputs reduced = reducer.reduce(scope, first, names);
  if (factored.empty()) return reduced;

  Outputs bases, own;
  std::vector<std::string> own_names;
  for (const Factored& each : factored) {
    bases.push_back(orthogonalize(scope, reduced[each.index]));
    own.push_back(matmul(scope, each.matrix, bases.back(), {.transpose_a = true}));
    own_names.push_back(names[each.index] + "/powersgd_q");
  }
  const Outputs all = reducer.reduce(scope, own, own_names);
  for (std::size_t k = 0; k < factored.size(); ++k) {
    const Factored& each = factored[k];
    const Output product = matmul(scope, bases[k], all[k], {.transpose_b = true});
    const Output whole = detail::with_state_update(scope, product, [&](const Scope& inside) {
      // What this rank's own factors leave out: the mean over the ranks is the same as with the common ones,
      // but here nothing piles up where ranks differ.
      const Output left = sub(inside, each.matrix, matmul(inside, bases[k], own[k], {.transpose_b = true}));
      return group(inside, {assign(inside, each.error, left), assign(inside, each.q, all[k])});
    });
    reduced[each.index] = reshape(scope, whole, local[each.index].gradient.shape());
  }
  return reduced;
}

}  // namespace

std::shared_ptr<const Compression> powersgd_compression(std::int64_t rank) {
  if (rank < 1) throw InvalidArgumentError("powersgd compression: rank is {}; it must be positive", rank);
  return std::make_shared<PowerSgd>(rank);
}

}  // namespace kolo
