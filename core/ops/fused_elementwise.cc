// Several element-wise ops in one pass over memory: the pass that fuses them makes the node.
#include <kolo/core/graph/op_schema.h>

namespace kolo {
namespace {

const RegisterOp fused_elementwise_op(OpSchema("FusedElementwise")
                                          .variadic("inputs")
                                          .required_attr("shape", Shape())
                                          .required_attr("ops", std::vector<std::string>{})
                                          .output("y")
                                          .shape([](ShapeContext& c) {
                                            c.set_output(0, c.attr<Shape>("shape"));
                                          })
                                          // The output's piece is written after all inputs' pieces were read.
                                          .in_place(0)
                                          .in_place(1)
                                          .in_place(2)
                                          .in_place(3)
                                          .in_place(4)
                                          .in_place(5)
                                          .made_by_pass());

}  // namespace
}  // namespace kolo
