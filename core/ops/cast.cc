#include <kolo/core/ops/cast.h>

#include <kolo/core/base/error.h>

namespace kolo {
namespace {

const std::vector<DType> kNumeric = {DType::f32, DType::f64, DType::i32, DType::i64, DType::boolean,
                                     DType::u8,  DType::i8,  DType::f16, DType::bf16};

const RegisterOp cast_op(OpSchema("Cast")
                             .input("x", kNumeric)
                             .required_attr("dtype", DType::f32)
                             .output("y", "dtype")
                             .shape([](ShapeContext& c) {
                               if (c.attr<DType>("dtype") == DType::string)
                                 throw InvalidArgumentError("cast: {} to string; no type can be cast to it",
                                                            c.dtype(0));
                               c.set_output(0, c.input(0));
                             })
                             .gradient([](Scope& s, const Node& op, Output dy) {
                               const DType from = op.input(0).dtype();
                               return is_floating(from) && is_floating(dy.dtype())
                                          ? Outputs{cast(s, dy, from)}
                                          : Outputs{Output()};
                             }));

}  // namespace

Output cast(const Scope& s, Output x, DType dtype) {
  if (x.dtype() == dtype) return x;
  if (dtype == DType::string)
    throw InvalidArgumentError("cast: {} is {}; no type can be cast to string", x.name(), x.dtype());
  return s.add("Cast", {x}, {{"dtype", dtype}});
}

}  // namespace kolo
