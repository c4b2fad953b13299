#include <kolo/core/ops/one_hot.h>

#include <kolo/core/base/error.h>

namespace kolo {
namespace {

void one_hot_shape(ShapeContext& c) {
  const Shape& indices = c.input(0);
  const auto depth = c.attr<std::int64_t>("depth");
  const int axis = c.attr<int>("axis");
  if (depth < 0) throw InvalidArgumentError("one_hot: the depth is {}; it must not be negative", depth);
  if (c.attr<DType>("dtype") == DType::string)
    throw InvalidArgumentError("one_hot: string was asked for; the result must be of numbers");
  if (!indices.has_rank()) return;
  if (axis < -1 || axis > indices.rank())
    throw InvalidArgumentError("one_hot: axis {} for indices {} must be in [-1, {}]", axis, indices,
                               indices.rank());
  std::vector<std::int64_t> dims = indices.dims();
  dims.insert(dims.begin() + (axis < 0 ? indices.rank() : axis), depth);
  c.set_output(0, Shape(std::move(dims)));
}

const RegisterOp one_hot_op(OpSchema("OneHot")
                                .input("indices", {DType::i32, DType::i64, DType::u8})
                                .required_attr("depth", 0)
                                .attr("on", 1.0)
                                .attr("off", 0.0)
                                .attr("axis", -1)
                                .attr("dtype", DType::f32)
                                .output("y", "dtype")
                                .shape(one_hot_shape)
                                .no_gradient());

}  // namespace

Output one_hot(const Scope& s, Output indices, std::int64_t depth, OneHotOptions options) {
  return s.add("OneHot", {indices},
               {{"depth", depth},
                {"on", options.on},
                {"off", options.off},
                {"axis", options.axis},
                {"dtype", options.dtype}});
}

}  // namespace kolo
