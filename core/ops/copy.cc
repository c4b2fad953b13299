// Copies its input: passes insert it where a value must outlive, or leave, the memory it is in.
#include <kolo/core/graph/op_schema.h>

namespace kolo {
namespace {

const RegisterOp copy_op(OpSchema("Copy").input("x").output("y").gradient([](Scope&, const Node&, Output dy) {
  return Outputs{dy};
}));

}  // namespace
}  // namespace kolo
