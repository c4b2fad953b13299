#include <kolo/core/ops/bf16.h>

#include <kolo/core/graph/op_schema.h>

namespace kolo {
namespace {

const RegisterOp to_bf16(OpSchema(kToBf16Op)
                             .input("x", {DType::f32})
                             .output("y", DType::bf16)
                             .shape([](ShapeContext& c) { c.set_output(0, c.input(0)); })
                             .made_by_pass());

const RegisterOp from_bf16(OpSchema(kFromBf16Op)
                               .input("x", {DType::bf16})
                               .output("y", DType::f32)
                               .shape([](ShapeContext& c) { c.set_output(0, c.input(0)); })
                               .made_by_pass());

const RegisterOp bf16_matmul(OpSchema(kBf16MatMulOp)
                                 .input("a", {DType::bf16, DType::f32})
                                 .input("b", {DType::bf16, DType::f32})
                                 .output("y", DType::f32)
                                 .required_attr("transpose_a", false)
                                 .required_attr("transpose_b", false)
                                 .required_attr("shape", Shape())
                                 .shape([](ShapeContext& c) { c.set_output(0, c.attr<Shape>("shape")); })
                                 .made_by_pass());

}  // namespace
}  // namespace kolo
