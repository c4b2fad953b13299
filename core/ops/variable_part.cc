#include <kolo/core/ops/variable_part.h>

#include <string>

#include <kolo/core/base/error.h>

namespace kolo {
namespace {

constexpr char kOp[] = "VariablePart";

void set_shape(ShapeContext& c) {
  const auto first = c.attr<std::int64_t>("first"), count = c.attr<std::int64_t>("count");
  const std::int64_t elements = c.input(0).elements();
  if (first < 0 || count < 0 || first > elements || count > elements - first)
    throw InvalidArgumentError("{} elements from element {} on do not lie in a variable of shape {}", count,
                               first, c.input(0));
  c.set_output(0, {count});
}

const RegisterOp variable_part_op(OpSchema(kOp)
                                      .input("ref")
                                      .required_attr("first", 0)
                                      .required_attr("count", 0)
                                      .output("part")
                                      .shape(set_shape)
                                      .variable_storage()
                                      .unfeedable()
                                      .no_gradient());

bool is_part(const Node& storage) { return storage.op() == kOp; }

}  // namespace

Variable variable_part(const Scope& s, const Variable& v, std::int64_t first, std::int64_t count) {
  const Node& whole = *v.ref().node;
  if (is_part(whole)) throw InvalidArgumentError("\"{}\" is itself a part of a variable", v.name());
  const std::string wished = v.name() + "/shard";
  const Node* known = s.graph().find_node(wished);
  if (known != nullptr && is_part(*known) && known->input(0).node == &whole &&
      known->attr<std::int64_t>("first") == first && known->attr<std::int64_t>("count") == count)
    return Variable::of(*known);
  const Scope beside = Scope(s.graph()).colocate_with(v.ref());
  const Node& storage = *beside.add(kOp, {v.ref()}, {{"first", first}, {"count", count}}, wished).node;
  // What every variable has. It has its value from the whole, so that there is nothing to initialise.
  const Output read = beside.add("Identity", {Output{&storage, 0}}, {}, storage.name() + "/read");
  beside.add("Assign", {Output{&storage, 0}, read}, {}, storage.name() + "/Assign");
  return Variable::of(storage);
}

const Node& whole_storage(const Node& storage) { return is_part(storage) ? *storage.input(0).node : storage; }

Variable whole_variable(const Variable& variable) {
  return Variable::of(whole_storage(*variable.ref().node));
}

}  // namespace kolo
