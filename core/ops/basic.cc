#include <kolo/core/ops/basic.h>

#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/core/graph/op_schema.h>

namespace kolo {
namespace {

const auto shape_attr = [](ShapeContext& c) { c.set_output(0, c.attr<Shape>("shape")); };
const auto pass_through = [](Scope&, const Node&, Output dy) { return Outputs{dy}; };

const RegisterOp placeholder_op(OpSchema("Placeholder")
                                    .required_attr("dtype", DType::f32)
                                    .attr("shape", Shape::unknown_rank())
                                    .output("output", "dtype")
                                    .shape(shape_attr)
                                    .stateful());

const RegisterOp constant_op(OpSchema("Const")
                                 .required_attr("value", Tensor::scalar(0.0f))
                                 .required_attr("dtype", DType::f32)
                                 .output("output", "dtype")
                                 .host_output(0, {DType::i32})
                                 .shape([](ShapeContext& c) {
                                   const Tensor value = c.attr<Tensor>("value");
                                   if (value.dtype() != c.attr<DType>("dtype"))
                                     throw InvalidArgumentError(
                                         "a constant of type {} has a value of type {}",
                                         c.attr<DType>("dtype"), value.dtype());
                                   c.set_output(0, value.shape());
                                 }));

void fill_shape(ShapeContext& c) {
  const Shape shape = c.attr<Shape>("shape");
  if (!shape.is_fully_known()) throw InvalidArgumentError("fill: the shape {} must be fully known", shape);
  if (c.attr<DType>("dtype") == DType::string)
    throw InvalidArgumentError("fill: string was asked for; the result must be of numbers");
  c.set_output(0, shape);
}

const RegisterOp fill_op(OpSchema("Fill")
                             .required_attr("dtype", DType::f32)
                             .required_attr("shape", Shape())
                             .required_attr("value", 0.0)
                             .output("output", "dtype")
                             .shape(fill_shape));

const RegisterOp zeros_like_op(OpSchema("ZerosLike").input("x").output("y").no_gradient());
const RegisterOp ones_like_op(OpSchema("OnesLike").input("x").output("y").no_gradient());
const RegisterOp identity_op(OpSchema("Identity").input("x").output("y").view().gradient(pass_through));
const RegisterOp stop_gradient_op(OpSchema("StopGradient").input("x").output("y").view().no_gradient());
const RegisterOp no_op_op(OpSchema("NoOp").stateful().no_gradient());

Output named_fill(const Scope& s, DType dtype, Shape shape, double value, const char* name) {
  return s.add("Fill", {}, {{"dtype", dtype}, {"shape", std::move(shape)}, {"value", value}},
               s.wished_name(name));
}

}  // namespace

Output placeholder(const Scope& s, DType dtype, Shape shape) {
  return s.add("Placeholder", {}, {{"dtype", dtype}, {"shape", std::move(shape)}});
}

Output constant(const Scope& s, Tensor value) {
  const DType dtype = value.dtype();
  return s.add("Const", {}, {{"value", std::move(value)}, {"dtype", dtype}});
}

Output constant(const Scope& s, float value) { return constant(s, Tensor::scalar(value)); }
Output fill(const Scope& s, DType dtype, Shape shape, double value) {
  return named_fill(s, dtype, std::move(shape), value, "Fill");
}
Output zeros(const Scope& s, DType dtype, Shape shape) {
  return named_fill(s, dtype, std::move(shape), 0, "zeros");
}
Output ones(const Scope& s, DType dtype, Shape shape) {
  return named_fill(s, dtype, std::move(shape), 1, "ones");
}
Output zeros_like(const Scope& s, Output x) { return s.add("ZerosLike", {x}); }
Output ones_like(const Scope& s, Output x) { return s.add("OnesLike", {x}); }
Output identity(const Scope& s, Output x) { return s.add("Identity", {x}); }
Output stop_gradient(const Scope& s, Output x) { return s.add("StopGradient", {x}); }
Operation group(const Scope& s, const std::vector<Operation>& before) {
  return s.control_dependencies(before).add("NoOp", {}, {}, s.wished_name("group"));
}
Operation no_op(const Scope& s) { return s.add("NoOp", {}); }

namespace {

// Within a step the default's own shape is known (prune makes the node an Identity); in the graph another
// may be fed.
const RegisterOp placeholder_with_default_op(
    OpSchema("PlaceholderWithDefault")
        .input("input")
        .attr("shape", Shape::unknown_rank())
        .output("output")
        .shape([](ShapeContext& c) {
          const auto shape = c.attr<Shape>("shape");
          if (!c.input(0).is_compatible_with(shape))
            throw InvalidArgumentError("placeholder_with_default: the default is {}, which does not fit {}",
                                       c.input(0), shape);
          c.set_output(0, shape);
        })
        .gradient([](Scope&, const Node&, Output dy) { return Outputs{dy}; }));

}  // namespace

Output placeholder_with_default(const Scope& s, Output input, Shape shape) {
  return s.add("PlaceholderWithDefault", {input}, {{"shape", std::move(shape)}});
}

// Copies its input: passes insert it where a value must outlive, or leave, the memory it is in.

namespace {

const RegisterOp copy_op(OpSchema("Copy").input("x").output("y").gradient([](Scope&, const Node&, Output dy) {
  return Outputs{dy};
}));

}  // namespace

}  // namespace kolo
