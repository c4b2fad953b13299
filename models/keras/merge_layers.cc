#include <kolo/models/keras/merge_layers.h>

#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/linalg.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/ops/reductions.h>
#include <kolo/core/ops/shapes.h>
#include <kolo/models/keras/layer_internal.h>
#include <kolo/models/keras/layer_parts_internal.h>

namespace kolo::keras {
namespace {

using detail::CallContext;
using detail::common_of;
using detail::Json;
using detail::LayerImpl;
using detail::RegisterLayer;

class MergeImpl final : public LayerImpl {
 public:
  using Function = std::function<Output(const Scope& s, const Outputs& inputs)>;
  MergeImpl(const char* class_name, const LayerOptions& options, Json config, Function function,
            std::size_t exactly = 0)
      : LayerImpl(class_name, common_of(options)),
        config_(std::move(config)),
        function_(std::move(function)),
        exactly_(exactly) {}
  Json config() const override { return config_; }

 protected:
  Outputs compute(const CallContext& c, const Outputs& inputs) override {
    if (inputs.size() < 2)
      throw InvalidArgumentError(
          "A merge layer should be called on a list of at least 2 inputs. Got {} inputs.", inputs.size());
    if (exactly_ != 0 && inputs.size() != exactly_)
      throw InvalidArgumentError("A `{}` layer should be called on exactly {} inputs. Got {} inputs.",
                                 class_name(), exactly_, inputs.size());
    return {function_(c.scope, inputs)};
  }

 private:
  Json config_;
  Function function_;
  std::size_t exactly_;  // 0: any number from 2 on
};

using Binary = Output (*)(const Scope& s, Output a, Output b);

MergeImpl::Function folded(Binary op) {
  return [op](const Scope& s, const Outputs& inputs) {
    Output result = inputs[0];
    for (std::size_t i = 1; i < inputs.size(); ++i) result = op(s, result, inputs[i]);
    return result;
  };
}

Output average(const Scope& s, const Outputs& inputs) {
  const Output sum = folded(add)(s, inputs);
  return mul(s, sum, fill(s, sum.dtype(), {}, 1.0 / static_cast<double>(inputs.size())));
}

Output concatenated(const Scope& s, const Outputs& inputs, int axis) {
  const int rank = inputs[0].shape().rank();
  const int along = axis < 0 ? axis + rank : axis;
  std::string shapes;
  bool match = along >= 0 && along < rank;
  for (const Output& input : inputs) {
    shapes += (shapes.empty() ? "" : ", ") + detail::shape_text(input.shape());
    match = match && input.shape().rank() == rank &&
            input.shape().with_dim(along, -1).is_compatible_with(inputs[0].shape().with_dim(along, -1));
  }
  if (!match)
    throw InvalidArgumentError(
        "A `Concatenate` layer requires inputs with matching shapes except for the concat axis. Got inputs "
        "shapes: [{}]",
        shapes);
  return concat(s, inputs, axis);
}

Output unit_length(const Scope& s, Output x, int axis) {
  const Output squares = reduce_sum(s, square(s, x), {.axes = {axis}, .keep_dims = true});
  return mul(s, x, rsqrt(s, maximum(s, squares, fill(s, x.dtype(), {}, 1e-7))));
}

// [N, all other axes, axis] or, last false, [N, axis, all other axes]; the others' dimensions to `others`.
Output as_matrices(const Scope& s, Output x, int axis, bool last, std::vector<std::int64_t>& others) {
  const Shape& shape = x.shape();
  std::vector<std::int64_t> perm = {0};
  std::int64_t elements = 1;
  if (!last) perm.push_back(axis);
  for (int i = 1; i < shape.rank(); ++i) {
    if (i == axis) continue;
    perm.push_back(i);
    others.push_back(shape.dim(i));
    elements *= shape.dim(i);
  }
  if (last) perm.push_back(axis);
  const std::int64_t along = shape.dim(axis);
  const Output turned = transpose(s, x, perm);
  return reshape(s, turned, last ? Shape{-1, elements, along} : Shape{-1, along, elements});
}

Output dotted(const Scope& s, const Outputs& inputs, const Pair& axes, bool normalize) {
  const auto axis_in = [&](std::size_t i, std::int64_t axis) {
    const Shape& shape = inputs[i].shape();
    const int along = static_cast<int>(axis < 0 ? axis + shape.rank() : axis);
    if (along < 1 || along >= shape.rank())
      throw InvalidArgumentError("Dot: axis {} of {}; it must be behind the batch", axis,
                                 detail::shape_text(shape));
    for (int d = 1; d < shape.rank(); ++d)
      if (shape.dim(d) < 0)
        throw InvalidArgumentError("Dot: all of {} but the batch must be known", detail::shape_text(shape));
    return along;
  };
  const int first = axis_in(0, axes.rows), second = axis_in(1, axes.cols);
  if (inputs[0].shape().dim(first) != inputs[1].shape().dim(second))
    throw InvalidArgumentError("Dimension incompatibility {} != {}. Layer shapes: {}, {}",
                               inputs[0].shape().dim(first), inputs[1].shape().dim(second),
                               detail::shape_text(inputs[0].shape()), detail::shape_text(inputs[1].shape()));
  const Output a = normalize ? unit_length(s, inputs[0], first) : inputs[0];
  const Output b = normalize ? unit_length(s, inputs[1], second) : inputs[1];
  std::vector<std::int64_t> dims;
  const Output left = as_matrices(s, a, first, true, dims);
  const Output right = as_matrices(s, b, second, false, dims);
  if (dims.empty()) dims = {1};
  dims.insert(dims.begin(), -1);
  return reshape(s, batch_matmul(s, left, right), Shape(dims));
}

const RegisterLayer merge_layers[] = {
    {"Add", detail::layer_from<Add>},
    {"Subtract", detail::layer_from<Subtract>},
    {"Multiply", detail::layer_from<Multiply>},
    {"Average", detail::layer_from<Average>},
    {"Maximum", detail::layer_from<Maximum>},
    {"Minimum", detail::layer_from<Minimum>},
    {"Concatenate",
     [](const Json& c) -> Layer {
       return Concatenate(detail::value_from(c, "axis", -1), detail::with_common(c, LayerOptions{}));
     }},
    {"Dot", [](const Json& c) -> Layer {
       return Dot(detail::value_from<Pair>(c, "axes", -1), detail::value_from(c, "normalize", false),
                  detail::with_common(c, LayerOptions{}));
     }}};

}  // namespace

Add::Add(const LayerOptions& options)
    : Layer(std::make_shared<MergeImpl>("Add", options, Json::object(), folded(add))) {}
Subtract::Subtract(const LayerOptions& options)
    : Layer(std::make_shared<MergeImpl>("Subtract", options, Json::object(), folded(sub), 2)) {}
Multiply::Multiply(const LayerOptions& options)
    : Layer(std::make_shared<MergeImpl>("Multiply", options, Json::object(), folded(mul))) {}
Average::Average(const LayerOptions& options)
    : Layer(std::make_shared<MergeImpl>("Average", options, Json::object(), average)) {}
Maximum::Maximum(const LayerOptions& options)
    : Layer(std::make_shared<MergeImpl>("Maximum", options, Json::object(), folded(maximum))) {}
Minimum::Minimum(const LayerOptions& options)
    : Layer(std::make_shared<MergeImpl>("Minimum", options, Json::object(), folded(minimum))) {}
Concatenate::Concatenate(int axis, const LayerOptions& options)
    : Layer(std::make_shared<MergeImpl>(
          "Concatenate", options, Json{{"axis", axis}},
          [axis](const Scope& s, const Outputs& inputs) { return concatenated(s, inputs, axis); })) {}
Dot::Dot(std::initializer_list<std::int64_t> axes, bool normalize, const LayerOptions& options)
    : Dot(axes.size() == 2
              ? Pair(axes.begin()[0], axes.begin()[1])
              : throw InvalidArgumentError("Dot: {} axes; it takes one of each input", axes.size()),
          normalize, options) {}

Dot::Dot(Pair axes, bool normalize, const LayerOptions& options)
    : Layer(std::make_shared<MergeImpl>(
          "Dot", options, Json{{"axes", axes}, {"normalize", normalize}},
          [axes, normalize](const Scope& s, const Outputs& inputs) {
            return dotted(s, inputs, axes, normalize);
          },
          2)) {}

}  // namespace kolo::keras
