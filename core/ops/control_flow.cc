#include <kolo/core/ops/control_flow.h>

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <kolo/core/base/error.h>
#include <kolo/core/graph/gradients.h>
#include <kolo/core/graph/loop_nodes.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/ops/shape_checks.h>
#include <kolo/core/ops/variables.h>

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
                              .host_input(0)
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

namespace {

// A loop is one node of the graph. Its ops are nodes of the same graph, which the session compiles into plans
// of their own; the loop's node names the tensors in which these begin and end:
//   variables   LoopVariables, one for each of the first inputs
//   captures    tensors made outside, one for each of the other inputs; they are fed to the loop's plans
//   results     what becomes of the variables in an iteration
// The gradient's node has a third kind of inputs, the gradients of the loop's results, and sums up over the
// iterations what flows back to the captures.

using Names = std::vector<std::string>;

Names names_of(const Outputs& outputs) {
  Names names;
  for (const Output& output : outputs) names.push_back(output.name());
  return names;
}

Outputs outputs_of(const Graph& graph, const Names& names) {
  Outputs outputs;
  for (const std::string& name : names) outputs.push_back(graph.find_output(name));
  return outputs;
}

Output loop_variable(const Scope& s, DType dtype, const Shape& shape, const std::string& name) {
  return s.add("LoopVariable", {}, {{"dtype", dtype}, {"shape", shape}}, name);
}

// A graph from a file may say anything.
void check_names(const ShapeContext& c) {
  const std::size_t variables = c.attr<Names>("variables").size(),
                    captures = c.attr<Names>("captures").size();
  const std::size_t results = c.attr<Names>("results").size();
  if (variables == 0 || results != variables ||
      variables + captures > static_cast<std::size_t>(c.num_inputs()))
    throw InvalidArgumentError(
        "a loop of {} inputs names {} variables, {} results and {} captures; it needs a variable, as many "
        "results as "
        "variables, and an input for each variable and capture",
        c.num_inputs(), variables, results, captures);
}

// Of the inputs [begin, end).
std::size_t count_floating(const ShapeContext& c, std::size_t begin, std::size_t end) {
  std::size_t count = 0;
  for (std::size_t i = begin; i < end; ++i) count += is_floating(c.dtype(static_cast<int>(i))) ? 1 : 0;
  return count;
}

// Behind the loop's inputs stand the gradients of those results that have one.
void check_gradient_names(const ShapeContext& c) {
  check_names(c);
  const std::size_t variables = c.attr<Names>("variables").size(),
                    fed = variables + c.attr<Names>("captures").size();
  const std::size_t flowing = count_floating(c, 0, variables), summed = count_floating(c, variables, fed);
  if (static_cast<std::size_t>(c.num_inputs()) != fed + flowing)
    throw InvalidArgumentError(
        "the gradient of a loop has {} inputs; for its variables and captures {} are right", c.num_inputs(),
        fed + flowing);
  const auto check = [&](const char* attr, std::size_t right) {
    if (const std::size_t count = c.attr<Names>(attr).size(); count != right)
      throw InvalidArgumentError("the gradient of a loop names {} tensors as {}; {} would be right", count,
                                 attr, right);
  };
  check("backward", flowing);
  check("next_backward", flowing);
  check("totals", summed);
  check("next_totals", summed);
}

// Gradients of what is no number do not exist: those outputs are never written.
void shapes_of_gradients(ShapeContext& c) {
  check_gradient_names(c);
  for (int i = 0; i < static_cast<int>(c.outputs().size()); ++i)
    c.set_output(i, is_floating(c.dtype(i)) ? c.input(i) : Shape::unknown_rank());
}

// The outputs behind the variables', which repeat the captures, are never written either.
void shapes_of_results(ShapeContext& c) {
  check_names(c);
  const auto variables = static_cast<int>(c.attr<Names>("variables").size());
  for (int i = 0; i < static_cast<int>(c.outputs().size()); ++i)
    c.set_output(i, i < variables ? c.input(i) : Shape::unknown_rank());
}

// Nodes of the loop, from its ends back; what lies outside is added to `captures`. A variable is part of the
// loop where it is one of those `updated`: iterations see what became of it.
std::vector<const Node*> nodes_of_loop(const Outputs& ends, int first_node, Outputs* captures,
                                       const std::set<const Node*>& updated = {}) {
  std::vector<const Node*> nodes;
  std::set<const Node*> seen;
  std::set<std::pair<const Node*, int>> captured;
  const auto visit = [&](const Output& value) {
    const OpSchema& schema = value.node->schema();
    const bool is_storage = schema.is_variable_storage() || schema.is_contained();
    const bool is_updated = is_variable_read(*value.node) && updated.count(value.node->input(0).node) > 0;
    if (value.node->id() >= first_node || is_storage || is_updated) {
      if (seen.insert(value.node).second) nodes.push_back(value.node);
    } else if (captures != nullptr && captured.insert({value.node, value.index}).second) {
      captures->push_back(value);
    }
  };
  for (const Output& end : ends) visit(end);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    for (const Output& in : nodes[i]->inputs()) visit(in);
    for (const Node* before : nodes[i]->control_inputs())
      if (before->id() >= first_node && seen.insert(before).second) nodes.push_back(before);
  }
  return nodes;
}

// The storages that nodes of the loop, or of loops in it, update.
std::set<const Node*> variables_updated_by(const std::vector<const Node*>& nodes) {
  std::set<const Node*> storages;
  const auto add_those_of = [&](const Node& node) {
    for (int i = 0; i < node.num_inputs(); ++i)
      if (node.schema().input_spec(i).updated) storages.insert(node.input(i).node);
  };
  for (const Node* node : nodes) {
    add_those_of(*node);
    for (const Node* inner : nodes_in_loop(*node)) add_those_of(*inner);
  }
  return storages;
}

std::vector<Operation> control_inputs_from_outside(const std::vector<const Node*>& nodes, int first_node) {
  std::vector<Operation> outside;
  for (const Node* node : nodes)
    for (const Node* before : node->control_inputs())
      if (before->id() < first_node && !before->schema().is_branch_guard()) outside.push_back(before);
  return outside;
}

void check_can_be_repeated(const Node& loop, const Outputs& ends, int first_node) {
  for (const Node* node : nodes_of_loop(ends, first_node, nullptr)) {
    const OpSchema& schema = node->schema();
    const bool harmless = !schema.is_stateful() || schema.is_variable_storage() || schema.is_branch_guard() ||
                          node->op() == "LoopVariable" || node->op() == "NoOp";
    if (!harmless)
      throw UnimplementedError(
          "the gradient of loop \"{}\" would run its body again, but {} has an effect or is random",
          loop.name(), describe(*node));
  }
}

// One gradient for each input of the loop's node; empty where there is none.
Outputs while_gradient(Scope& s, const Node& loop, const Outputs& dy) {
  const Graph& graph = loop.graph();
  const Outputs variables = outputs_of(graph, loop.attr<Names>("variables"));
  const Outputs captures = outputs_of(graph, loop.attr<Names>("captures"));
  const Outputs results = outputs_of(graph, loop.attr<Names>("results"));
  check_can_be_repeated(loop, results, variables[0].node->id());

  Outputs inputs = loop.inputs(), backward, ys, totals, new_totals;
  Scope inner = s.without_control_dependencies().name_scope("iteration");
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (!is_floating(results[i].dtype())) continue;
    inputs.push_back(dy[i] ? dy[i] : zeros_like(s, loop.output(static_cast<int>(i))));
    backward.push_back(loop_variable(inner, results[i].dtype(), results[i].shape(), "gradient"));
    ys.push_back(results[i]);
  }
  Outputs xs, stops = variables;
  stops.insert(stops.end(), captures.begin(), captures.end());
  for (const Output& x : stops)
    if (is_floating(x.dtype())) xs.push_back(x);
  const Outputs dx =
      gradients(inner, ys, xs, backward, {.stop_gradients = stops, .zeros_where_unreached = true});
  const Outputs next(dx.begin(), dx.begin() + static_cast<std::ptrdiff_t>(ys.size()));
  for (std::size_t i = ys.size(); i < dx.size(); ++i) {
    totals.push_back(loop_variable(inner, dx[i].dtype(), xs[i].shape(), "total"));
    new_totals.push_back(add(inner, totals.back(), dx[i]));
  }
  const Operation gradient = s.add("WhileGradient", inputs,
                                   {{"variables", loop.attr<Names>("variables")},
                                    {"captures", loop.attr<Names>("captures")},
                                    {"condition", loop.attr<std::string>("condition")},
                                    {"results", loop.attr<Names>("results")},
                                    {"max_iterations", loop.attr<std::int64_t>("max_iterations")},
                                    {"backward", names_of(backward)},
                                    {"next_backward", names_of(next)},
                                    {"totals", names_of(totals)},
                                    {"next_totals", names_of(new_totals)}});
  Outputs result;
  for (int i = 0; i < loop.num_inputs(); ++i)
    result.push_back(is_floating(loop.input(i).dtype()) ? gradient.output(i) : Output());
  return result;
}

OpSchema loop_schema(const char* name) {
  return OpSchema(name)
      .variadic("inputs", {}, true)
      .required_attr("variables", Names{})
      .required_attr("captures", Names{})
      .required_attr("condition", "")
      .required_attr("results", Names{})
      .attr("max_iterations", -1)
      .names_tensors("variables")
      .names_tensors("captures")
      .names_tensors("condition")
      .names_tensors("results")
      .output_per_input()
      .stateful()
      .cpu_only();  // its kernel waits for steps whose nodes may be on any device
}

const RegisterOp loop_variable_op(OpSchema("LoopVariable")
                                      .required_attr("dtype", DType::f32)
                                      .required_attr("shape", Shape())
                                      .output("value", "dtype")
                                      .shape([](ShapeContext& c) { c.set_output(0, c.attr<Shape>("shape")); })
                                      .stateful()
                                      .unfeedable());
const RegisterOp while_op(
    loop_schema("While").shape(shapes_of_results).gradient(GradientFunction(while_gradient)));
const RegisterOp while_gradient_op(loop_schema("WhileGradient")
                                       .required_attr("backward", Names{})
                                       .required_attr("next_backward", Names{})
                                       .required_attr("totals", Names{})
                                       .required_attr("next_totals", Names{})
                                       .names_tensors("backward")
                                       .names_tensors("next_backward")
                                       .names_tensors("totals")
                                       .names_tensors("next_totals")
                                       .shape(shapes_of_gradients)
                                       .no_gradient());

void check_results(const Outputs& variables, const Outputs& results) {
  if (results.size() != variables.size())
    throw InvalidArgumentError("while_loop: the body gives {} tensors for {} variables", results.size(),
                               variables.size());
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (!results[i]) throw InvalidArgumentError("while_loop: result {} of the body is empty", i);
    if (results[i].dtype() != variables[i].dtype() ||
        !results[i].shape().is_compatible_with(variables[i].shape()))
      throw InvalidArgumentError(
          "while_loop: variable {} is {} {}, but the body makes {} {} of it; type and shape must not change",
          i, variables[i].dtype(), variables[i].shape(), results[i].dtype(), results[i].shape());
  }
}

}  // namespace

Outputs while_loop(const Scope& s, const LoopCondition& condition, const LoopBody& body,
                   const Outputs& initial, const WhileOptions& options) {
  if (initial.empty()) throw InvalidArgumentError("while_loop: there are no variables");
  for (const Output& value : initial)
    if (!value) throw InvalidArgumentError("while_loop: an initial value is empty");
  const Scope scope = s.name_scope(s.wished_name("while"));
  const Scope inner = scope.without_control_dependencies();
  Outputs variables;
  for (const Output& value : initial)
    variables.push_back(loop_variable(inner, value.dtype(), value.shape(), "variable"));
  const int first_node = variables[0].node->id();

  const Output again = condition(inner.name_scope("condition"), variables);
  if (!again || again.dtype() != DType::boolean || (again.shape().has_rank() && again.shape().rank() != 0))
    throw InvalidArgumentError("while_loop: the condition must be a bool scalar{}",
                               again ? fmt::format(", not {} {}", again.dtype(), again.shape()) : "");
  const Outputs results = body(inner.name_scope("body"), variables);
  check_results(variables, results);

  Outputs ends = results, inputs = initial, captures;
  ends.push_back(again);
  const auto updated = variables_updated_by(nodes_of_loop(ends, first_node, nullptr));
  const auto nodes = nodes_of_loop(ends, first_node, &captures, updated);
  inputs.insert(inputs.end(), captures.begin(), captures.end());
  const Operation loop = scope.control_dependencies(control_inputs_from_outside(nodes, first_node))
                             .add("While", inputs,
                                  {{"variables", names_of(variables)},
                                   {"captures", names_of(captures)},
                                   {"condition", again.name()},
                                   {"results", names_of(results)},
                                   {"max_iterations", options.max_iterations}},
                                  "loop");
  Outputs finals;
  for (std::size_t i = 0; i < initial.size(); ++i) finals.push_back(loop.output(static_cast<int>(i)));
  return finals;
}

}  // namespace kolo
