#include <kolo/core/ops/control_flow.h>

#include <algorithm>
#include <string>

#include <kolo/core/base/error.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/shape_checks.h>

namespace kolo {
namespace {

// What both shapes have in common.
Shape common_shape(const Shape& a, const Shape& b) {
  if (!a.has_rank() || !b.has_rank() || a.rank() != b.rank()) return Shape::unknown_rank();
  Shape common = a;
  for (int i = 0; i < a.rank(); ++i)
    if (a.dim(i) != b.dim(i)) common = common.with_dim(i, -1);
  return common;
}

const RegisterOp guard_op(OpSchema("BranchGuard")
                              .input("pred", {DType::boolean})
                              .required_attr("taken", true)
                              .guards_branch()
                              .no_gradient());

const RegisterOp join_op(OpSchema("BranchJoin")
                             .input("if_true")
                             .input("if_false", "if_true")
                             .output("output")
                             .shape([](ShapeContext& c) {
                               c.set_output(0, common_shape(c.input(0), c.input(1)));
                             })
                             .joins_branches()
                             .gradient([](Scope&, const Node&, Output dy) {
                               return Outputs{dy, dy};
                             }));

const RegisterOp taken_or_zeros_op(OpSchema("TakenOrZeros")
                                       .input("value")
                                       .input("like", "value")
                                       .output("output")
                                       .shape(detail::alike)
                                       .joins_branches()
                                       .gradient([](Scope&, const Node&, Output dy) {
                                         return Outputs{dy, {}};
                                       }));

const RegisterOp exclusive_op(
    OpSchema("CheckExclusive").variadic("conditions", {DType::boolean}).stateful().no_gradient());

void check_condition(const char* what, const Output& pred) {
  if (!pred) throw InvalidArgumentError("{}: the condition is empty", what);
  if (pred.dtype() != DType::boolean || (pred.shape().has_rank() && pred.shape().rank() != 0))
    throw InvalidArgumentError("{}: the condition {} is {} {}; it must be a bool scalar", what, pred.name(),
                               pred.dtype(), pred.shape());
}

Scope branch_scope(const Scope& s, Output pred, bool taken) {
  const Operation guard = s.add("BranchGuard", {pred}, {{"taken", taken}}, taken ? "if_true" : "if_false");
  return s.in_branch(guard).name_scope(taken ? "if_true" : "if_false");
}

// Through an Identity of the branch: what a branch returns of the values outside is skipped with it, too.
Outputs outputs_of(const Scope& s, const Branch& branch, const char* name) {
  Outputs outputs = branch(s);
  for (Output& output : outputs) {
    if (!output) throw InvalidArgumentError("cond: an output of {} is empty", name);
    output = identity(s, output);
  }
  return outputs;
}

void check_alike(const Outputs& if_true, const Outputs& if_false) {
  if (if_true.size() != if_false.size())
    throw InvalidArgumentError(
        "cond: if_true gives {} outputs and if_false {}; both must return the same number of outputs",
        if_true.size(), if_false.size());
  for (std::size_t i = 0; i < if_true.size(); ++i)
    if (if_true[i].dtype() != if_false[i].dtype())
      throw InvalidArgumentError(
          "cond: output {} of if_true is {} and of if_false {}; both must have one type", i,
          if_true[i].dtype(), if_false[i].dtype());
}

Outputs first_case(const Scope& s, const std::vector<std::pair<Output, Branch>>& cases, std::size_t first,
                   const Branch& otherwise) {
  if (first == cases.size()) return otherwise(s);
  return cond(s, cases[first].first, cases[first].second,
              [&](const Scope& inner) { return first_case(inner, cases, first + 1, otherwise); });
}

}  // namespace

Outputs cond(const Scope& s, Output pred, const Branch& if_true, const Branch& if_false) {
  check_condition("cond", pred);
  const Scope inner = s.name_scope(s.wished_name("cond"));
  const Outputs yes = outputs_of(branch_scope(inner, pred, true), if_true, "if_true");
  const Outputs no = outputs_of(branch_scope(inner, pred, false), if_false, "if_false");
  check_alike(yes, no);
  Outputs joined;
  for (std::size_t i = 0; i < yes.size(); ++i) joined.push_back(inner.add("BranchJoin", {yes[i], no[i]}));
  return joined;
}

Operation cond(const Scope& s, Output pred, const BranchEffect& if_true, const BranchEffect& if_false) {
  const auto done = [&](const BranchEffect& effect) {
    return [&](const Scope& branch) {
      const Operation op = effect(branch);
      return Outputs{identity(op ? branch.control_dependencies({op}) : branch, pred)};
    };
  };
  const Outputs joined = cond(s, pred, Branch(done(if_true)), Branch(done(if_false)));
  return group(s, {joined[0].node});
}

Outputs case_of(const Scope& s, const std::vector<std::pair<Output, Branch>>& cases, const Branch& otherwise,
                bool exclusive) {
  for (const auto& [pred, branch] : cases) check_condition("case_of", pred);
  const Scope inner = s.name_scope(s.wished_name("case"));
  if (!exclusive) return first_case(inner, cases, 0, otherwise);
  Outputs conditions;
  for (const auto& [pred, branch] : cases) conditions.push_back(pred);
  const Operation check = inner.add("CheckExclusive", conditions);
  return first_case(inner.control_dependencies({check}), cases, 0, otherwise);
}

Outputs tuple(const Scope& s, const Outputs& values, const std::vector<Operation>& before) {
  std::vector<Operation> all = before;
  for (const Output& value : values)
    if (value) all.push_back(value.node);
  const Scope inner = s.name_scope(s.wished_name("tuple"));
  const Operation gate = group(inner, all);
  Outputs gated;
  for (const Output& value : values)
    gated.push_back(value ? identity(inner.control_dependencies({gate}), value) : Output());
  return gated;
}

Output with_dependencies(const Scope& s, const std::vector<Operation>& before, Output value) {
  return identity(s.control_dependencies(before), value);
}

}  // namespace kolo
