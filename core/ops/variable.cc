#include <kolo/core/ops/variable.h>

#include <kolo/core/base/error.h>
#include <kolo/core/ops/basic.h>

namespace kolo {
namespace {

void check_same_shape(ShapeContext& c) {
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
                               .shape(check_same_shape)
                               .gpu_types(kGpuVariables)
                               .no_gradient());
const RegisterOp assign_add_op(OpSchema("AssignAdd")
                                   .input("ref")
                                   .updates()
                                   .input("value", "ref")
                                   .output("new_value")
                                   .shape(check_same_shape)
                                   .gpu_types(kGpuVariables)
                                   .no_gradient());
const RegisterOp assign_sub_op(OpSchema("AssignSub")
                                   .input("ref")
                                   .updates()
                                   .input("value", "ref")
                                   .output("new_value")
                                   .shape(check_same_shape)
                                   .gpu_types(kGpuVariables)
                                   .no_gradient());

std::vector<Variable> variables_of(const Graph& graph, const char* collection) {
  std::vector<Variable> variables;
  for (const Node* node : graph.collection(collection)) variables.push_back(Variable::of(*node));
  return variables;
}

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
  storage_ = free.add("Variable", {}, {{"dtype", initial_value.dtype()}, {"shape", shape}}, wished).node;
  // Full names: the storage's is unique, so these are.
  const Scope at_storage = Scope(s.graph()).colocate_with(storage_);
  assign_ = at_storage.add("Assign", {ref(), initial_value}, {}, name() + "/Assign").node;
  read_ = at_storage.add("Identity", {ref()}, {}, name() + "/read").node;
  s.graph().add_to_collection(options.local ? kLocalVariables : kGlobalVariables, *storage_);
  if (options.trainable) s.graph().add_to_collection(kTrainableVariables, *storage_);
}

Variable Variable::of(const Node& storage) {
  Variable variable;
  variable.storage_ = &storage;
  variable.assign_ = part(storage, "/Assign");
  variable.read_ = part(storage, "/read");
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
  const Scope top = Scope(s.graph()).named("global_step");
  const Output zero =
      Scope(s.graph())
          .named("global_step/initial_value")
          .add("Const", {}, {{"value", Tensor::scalar<std::int64_t>(0)}, {"dtype", DType::i64}});
  const Variable step(top, zero, {.trainable = false});
  s.graph().add_to_collection(kGlobalStep, *step.ref().node);
  return step;
}

Variable get_or_create_global_step(const Scope& s) {
  const Variable existing = find_global_step(s.graph());
  return existing ? existing : create_global_step(s);
}

}  // namespace kolo
