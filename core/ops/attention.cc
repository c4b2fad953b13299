#include <kolo/core/ops/attention.h>

#include <kolo/core/base/error.h>
#include <kolo/core/ops/shape_checks.h>

namespace kolo {
namespace {

struct Shapes {
  Shape y;
  Shape log_sum;
};

Shapes shapes_behind(const ShapeContext& c) {
  const Shape& qkv = c.input(0);
  const auto heads = c.attr<std::int64_t>("heads");
  if (heads < 1) throw InvalidArgumentError("self_attention: heads is {}; it must be at least 1", heads);
  if (!qkv.has_rank()) return {{-1, -1, -1}, {-1, heads, -1}};
  const std::int64_t columns = qkv.rank() == 3 ? qkv.dim(2) : 0, parts = detail::checked_multiply(3, heads);
  if (qkv.rank() != 3 || (columns >= 0 && columns % parts != 0))
    throw InvalidArgumentError(
        "self_attention: qkv is {} and there are {} heads; it must be [N,T,3·width], and the width a "
        "multiple of the heads",
        qkv, heads);
  return {{qkv.dim(0), qkv.dim(1), columns < 0 ? -1 : columns / 3}, {qkv.dim(0), heads, qkv.dim(1)}};
}

OpSchema with_options(const char* name) {
  return OpSchema(name)
      .input("qkv", {DType::f32, DType::f64})
      .required_attr("heads", 1)
      .required_attr("causal", false);
}

// Output 1 is, for each head and place, the logarithm of the sum of the exponentials of its scores: with it
// the gradient makes the softmax anew from the scores in one pass.
const RegisterOp self_attention_op(with_options("SelfAttention")
                                       .output("y")
                                       .output("log_sum")
                                       .shape([](ShapeContext& c) {
                                         Shapes shapes = shapes_behind(c);
                                         c.set_output(0, std::move(shapes.y));
                                         c.set_output(1, std::move(shapes.log_sum));
                                       })
                                       .gradient([](Scope& s, const Node& op, Output dy) {
                                         return Outputs{s.add(
                                             "SelfAttentionGrad",
                                             {op.input(0), op.output(0), op.output(1), dy},
                                             {{"heads", op.attr("heads")}, {"causal", op.attr("causal")}})};
                                       }));

const RegisterOp self_attention_grad_op(with_options("SelfAttentionGrad")
                                            .input("y", "qkv")
                                            .input("log_sum", "qkv")
                                            .input("dy", "qkv")
                                            .output("dqkv")
                                            .shape([](ShapeContext& c) {
                                              const Shapes shapes = shapes_behind(c);
                                              detail::check_input(c, 1, shapes.y, "the attention's result");
                                              detail::check_input(c, 2, shapes.log_sum,
                                                                  "one number for each head and place");
                                              detail::check_input(c, 3, shapes.y,
                                                                  "as the attention's result");
                                              c.set_output(0, c.input(0));
                                            }));

}  // namespace

Output self_attention(const Scope& s, Output qkv, SelfAttentionOptions options) {
  return s.add("SelfAttention", {qkv}, {{"heads", options.heads}, {"causal", options.causal}});
}

}  // namespace kolo
