#include <kolo/core/ops/variables.h>

#include <string>
#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/core/graph/reached.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/dtypes.h>

namespace kolo {
namespace {

void check_value_shape(ShapeContext& c) {
  if (!c.input(0).is_compatible_with(c.input(1)))
    throw InvalidArgumentError("Assign requires shapes of both tensors to match. lhs shape= {} rhs shape= {}",
                               c.input(0), c.input(1));
  c.set_output(0, c.input(0));
}

// As TensorFlow 1 registers them: a whole number of 32 bits is a counter, which the host reads.
const std::vector<DType> kGpuVariables = {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i64};

const RegisterOp variable_op(OpSchema("Variable")
                                 .required_attr("dtype", DType::f32)
                                 .required_attr("shape", Shape())
                                 .attr("local", false)
                                 .attr("container", "")
                                 .attr("shared_name", "")
                                 .output("ref", "dtype")
                                 .shape([](ShapeContext& c) { c.set_output(0, c.attr<Shape>("shape")); })
                                 .variable_storage()
                                 .gpu_types(kGpuVariables)
                                 .unfeedable()
                                 .no_gradient());
const RegisterOp assign_op(OpSchema("Assign")
                               .input("ref")
                               .updates()
                               .initializes()
                               .input("value", "ref")
                               .output("new_value")
                               .shape(check_value_shape)
                               .gpu_types(kGpuVariables)
                               .no_gradient());
const RegisterOp assign_add_op(OpSchema("AssignAdd")
                                   .input("ref")
                                   .updates()
                                   .input("value", "ref")
                                   .output("new_value")
                                   .shape(check_value_shape)
                                   .gpu_types(kGpuVariables)
                                   .no_gradient());
const RegisterOp assign_sub_op(OpSchema("AssignSub")
                                   .input("ref")
                                   .updates()
                                   .input("value", "ref")
                                   .output("new_value")
                                   .shape(check_value_shape)
                                   .gpu_types(kGpuVariables)
                                   .no_gradient());

std::vector<Variable> variables_of(const Graph& graph, const char* collection) {
  std::vector<Variable> variables;
  for (const Node* node : graph.collection(collection)) variables.push_back(Variable::of(*node));
  return variables;
}

constexpr char kReadSuffix[] = "/read";

const Node* part(const Node& storage, const char* suffix) {
  const Node* node = storage.graph().find_node(storage.name() + suffix);
  if (node == nullptr)
    throw InvalidArgumentError("\"{}\" is no variable: the graph has no \"{}{}\"", storage.name(),
                               storage.name(), suffix);
  return node;
}

}  // namespace

Variable::Variable(const Scope& s, Output initial_value, VariableOptions options) {
  const Shape& shape = initial_value.shape();
  const std::string wished = s.wished_name("Variable");
  if (!shape.is_fully_known())
    throw InvalidArgumentError(
        "variable \"{}\": the shape of its initial value {} is {}; it must be fully known", wished,
        initial_value.name(), shape);
  // Control dependencies are for what runs in a step; waiting for one would make initialisation run half the
  // graph.
  const Scope free = s.without_control_dependencies();
  AttrMap attrs = {{"dtype", initial_value.dtype()},
                   {"shape", shape},
                   {"local", options.local},
                   {"shared_name", std::move(options.shared_name)}};
  storage_ = free.add("Variable", {}, std::move(attrs), wished).node;
  // Full names: the storage's is unique, so these are.
  const Scope at_storage = Scope(s.graph()).colocate_with(storage_);
  assign_ = at_storage.add("Assign", {ref(), initial_value}, {}, name() + "/Assign").node;
  read_ = at_storage.add("Identity", {ref()}, {}, name() + kReadSuffix).node;
  s.graph().add_to_collection(options.local ? kLocalVariables : kGlobalVariables, *storage_);
  if (options.trainable) s.graph().add_to_collection(kTrainableVariables, *storage_);
}

Variable Variable::of(const Node& storage) {
  Variable variable;
  variable.storage_ = &storage;
  variable.assign_ = part(storage, "/Assign");
  variable.read_ = part(storage, kReadSuffix);
  return variable;
}

Output assign(const Scope& s, const Variable& v, Output value) {
  return s.colocate_with(v.ref()).add("Assign", {v.ref(), value});
}
Output assign_add(const Scope& s, const Variable& v, Output value) {
  return s.colocate_with(v.ref()).add("AssignAdd", {v.ref(), value});
}
Output assign_sub(const Scope& s, const Variable& v, Output value) {
  return s.colocate_with(v.ref()).add("AssignSub", {v.ref(), value});
}

std::vector<Variable> global_variables(const Graph& graph) { return variables_of(graph, kGlobalVariables); }
std::vector<Variable> trainable_variables(const Graph& graph) {
  return variables_of(graph, kTrainableVariables);
}
std::vector<Variable> local_variables(const Graph& graph) { return variables_of(graph, kLocalVariables); }

Operation variables_initializer(const Scope& s, const std::vector<Variable>& variables,
                                const std::string& name) {
  std::vector<Operation> initializers;
  for (const Variable& variable : variables) initializers.push_back(variable.initializer());
  return group(s.named(name), initializers);
}

Operation global_variables_initializer(const Scope& s) {
  return variables_initializer(s, global_variables(s.graph()));
}

Variable find_global_step(const Graph& graph) {
  const auto& steps = graph.collection(kGlobalStep);
  const Node* node = steps.empty() ? graph.find_node("global_step") : steps.front();
  if (node == nullptr) return {};
  if (node->num_outputs() == 0 || !is_integer(node->output_dtype(0)))
    throw InvalidArgumentError("Existing \"global_step\" does not have integer type");
  return Variable::of(*node);
}

Variable create_global_step(const Scope& s) {
  if (find_global_step(s.graph())) throw InvalidArgumentError("\"global_step\" already exists.");
  // Where s puts variables: a replica_device_setter has all workers share it.
  const Scope top = s.at_top().without_control_dependencies().in_branch({});
  const Output zero =
      top.named("global_step/initial_value")
          .add("Const", {}, {{"value", Tensor::scalar<std::int64_t>(0)}, {"dtype", DType::i64}});
  const Variable step(top.named("global_step"), zero, {.trainable = false});
  s.graph().add_to_collection(kGlobalStep, *step.ref().node);
  return step;
}

Variable get_or_create_global_step(const Scope& s) {
  const Variable existing = find_global_step(s.graph());
  return existing ? existing : create_global_step(s);
}

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
  const Output read = beside.add("Identity", {Output{&storage, 0}}, {}, storage.name() + kReadSuffix);
  beside.add("Assign", {Output{&storage, 0}, read}, {}, storage.name() + "/Assign");
  return Variable::of(storage);
}

bool is_variable_read(const Node& node) {
  if (!node.schema().is_view()) return false;
  const Node& storage = *node.input(0).node;
  return storage.schema().is_variable_storage() && node.name() == storage.name() + kReadSuffix;
}

const Node& whole_storage(const Node& storage) { return is_part(storage) ? *storage.input(0).node : storage; }

Variable whole_variable(const Variable& variable) {
  return Variable::of(whole_storage(*variable.ref().node));
}

namespace {

using detail::kNumeric;

void scatter_shape(ShapeContext& c) {
  const Shape &ref = c.input(0), &indices = c.input(1), &updates = c.input(2);
  if (ref.rank() == 0) throw InvalidArgumentError("scatter: the variable is a scalar; it has no rows");
  if (indices.has_rank()) {
    std::vector<std::int64_t> dims = indices.dims();
    dims.insert(dims.end(), ref.dims().begin() + 1, ref.dims().end());
    const Shape wanted(std::move(dims));
    if (!updates.is_compatible_with(wanted))
      throw InvalidArgumentError(
          "scatter: the updates are {}; for a variable of {} and indices of {} they must be {}", updates, ref,
          indices, wanted);
  }
  c.set_output(0, ref);
}

OpSchema scatter(const char* name, const std::vector<DType>& types) {
  return OpSchema(name)
      .input("ref", types)
      .updates()
      .input("indices", {DType::i32, DType::i64})
      .input("updates", "ref")
      .output("new_value")
      .shape(scatter_shape)
      .no_gradient();
}

const RegisterOp scatter_ops[] = {
    scatter("ScatterAdd", detail::kArithmetic),
    scatter("ScatterSub", detail::kArithmetic),
    scatter("ScatterUpdate", kNumeric),
};

Output add_scatter(const char* op, const Scope& s, const Variable& v, Output indices, Output updates) {
  return s.colocate_with(v.ref()).add(op, {v.ref(), indices, updates});
}

}  // namespace

Output scatter_add(const Scope& s, const Variable& v, Output indices, Output updates) {
  return add_scatter("ScatterAdd", s, v, indices, updates);
}
Output scatter_sub(const Scope& s, const Variable& v, Output indices, Output updates) {
  return add_scatter("ScatterSub", s, v, indices, updates);
}
Output scatter_update(const Scope& s, const Variable& v, Output indices, Output updates) {
  return add_scatter("ScatterUpdate", s, v, indices, updates);
}

void add_update_op(const Scope& s, Operation update) {
  s.graph().add_to_collection(kUpdateOps, *update.node);
}

std::vector<Operation> update_ops(const Graph& graph) {
  const auto& nodes = graph.collection(kUpdateOps);
  return {nodes.begin(), nodes.end()};
}

Operation with_updates(const Scope& s, Operation step, Output loss) {
  const std::vector<Operation> updates = update_ops(s.graph());
  if (updates.empty()) return step;
  const detail::NodesById before_loss = detail::ancestors_of({loss});
  std::vector<Operation> all{step};
  for (const Operation& update : updates) {
    const Node& node = *update.node;
    const auto& spec = node.schema();
    bool belongs = false;
    for (int i = 0; i < node.num_inputs(); ++i)
      belongs |= !spec.input_spec(i).updated && before_loss.count(node.input(i).node->id()) > 0;
    if (!belongs) continue;
    all.push_back(s.colocate_with(update).control_dependencies({step}).add(node.op(), node.inputs(),
                                                                           node.attrs(), "update"));
  }
  return all.size() == 1 ? step : group(s.named("train_step"), all);
}

}  // namespace kolo
