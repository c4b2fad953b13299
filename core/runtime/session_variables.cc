#include <kolo/core/runtime/session_variables.h>

#include <kolo/core/base/error.h>
#include <kolo/core/runtime/remote_session.h>
#include <kolo/core/runtime/session.h>
#include <kolo/core/runtime/session_state.h>

namespace kolo {
namespace detail {
namespace {

std::vector<std::string> names_of(const std::vector<Variable>& variables) {
  std::vector<std::string> names;
  for (const Variable& variable : variables) names.push_back(variable.name());
  return names;
}

Tensor local_value(SessionState& state, const Variable& variable) {
  const Node& node = *variable.ref().node;
  if (!state.is_initialized(node)) return {};
  return read_variable(state.variable(node));
}

}  // namespace

Tensor value_of(Session& session, const Variable& variable) {
  Tensor value;
  read_values(session, {variable}, [&](std::size_t /*variable*/, const Tensor& read) { value = read; });
  return value;
}

void read_values(Session& session, const std::vector<Variable>& variables,
                 const std::function<void(std::size_t, const Tensor&)>& on_value) {
  if (RemoteSession* const remote = remote_of(session))
    return remote->get_variables(names_of(variables), on_value);
  for (std::size_t i = 0; i < variables.size(); ++i)
    on_value(i, local_value(state_of(session), variables[i]));
}

void write_values(Session& session, const std::vector<Variable>& variables,
                  const std::function<void(std::size_t, const Tensor&)>& fill) {
  if (RemoteSession* const remote = remote_of(session))
    return remote->set_variables(names_of(variables), [&](std::size_t i) {
      Tensor value(variables[i].dtype(), variables[i].shape());
      fill(i, value);
      return value;
    });
  for (std::size_t i = 0; i < variables.size(); ++i) {
    VariableStorage& storage = storage_of(session, variables[i]);
    const Tensor value = memory_for_value(storage);
    fill(i, value);
    write_variable(storage, value);
  }
}

std::vector<bool> are_initialized(Session& session, const std::vector<Variable>& variables) {
  if (RemoteSession* const remote = remote_of(session)) return remote->are_initialized(names_of(variables));
  std::vector<bool> initialized;
  for (const Variable& variable : variables)
    initialized.push_back(state_of(session).is_initialized(*variable.ref().node));
  return initialized;
}

}  // namespace detail

namespace {

std::vector<Variable> variables_named(const Graph& graph, const std::vector<std::string>& names) {
  std::vector<Variable> variables;
  for (const std::string& name : names) {
    const Node* const node = graph.find_node(name);
    if (node == nullptr || !node->schema().is_variable_storage())
      throw NotFoundError("there is no variable \"{}\" in the graph", name);
    variables.push_back(Variable::of(*node));
  }
  return variables;
}

}  // namespace

std::vector<Tensor> Session::get_variables(const std::vector<std::string>& names) {
  std::vector<Tensor> values(names.size());
  detail::read_values(*this, variables_named(graph(), names), [&](std::size_t i, const Tensor& value) {
    if (value) values[i] = value.clone();
  });
  return values;
}

void Session::set_variables(const std::map<std::string, Tensor>& values) {
  std::vector<std::string> names;
  for (const auto& [name, value] : values) names.push_back(name);
  const std::vector<Variable> variables = variables_named(graph(), names);
  for (const Variable& variable : variables) {
    const Tensor& value = values.at(variable.name());
    if (value.dtype() != variable.dtype() || value.shape() != variable.shape())
      throw InvalidArgumentError("variable \"{}\" is {} {}; its new value is {} {}", variable.name(),
                                 variable.dtype(), variable.shape(), value.dtype(), value.shape());
  }
  detail::write_values(*this, variables,
                       [&](std::size_t i, const Tensor& into) { into.copy_from(values.at(names[i])); });
}

std::vector<std::string> report_uninitialized_variables(Session& session,
                                                        const std::vector<Variable>& variables) {
  const std::vector<bool> initialized = detail::are_initialized(session, variables);
  std::vector<std::string> names;
  for (std::size_t i = 0; i < variables.size(); ++i)
    if (!initialized[i]) names.push_back(variables[i].name());
  return names;
}

std::vector<std::string> report_uninitialized_variables(Session& session) {
  std::vector<Variable> all = global_variables(session.graph());
  for (const Variable& variable : local_variables(session.graph())) all.push_back(variable);
  return report_uninitialized_variables(session, all);
}

}  // namespace kolo
