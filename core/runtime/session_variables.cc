#include <kolo/core/runtime/session_variables.h>

#include <kolo/core/base/error.h>
#include <kolo/core/runtime/remote_session.h>
#include <kolo/core/runtime/session.h>
#include <kolo/core/runtime/session_state.h>

namespace kolo::detail {
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
      const Tensor value(variables[i].dtype(), variables[i].shape());
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

}  // namespace kolo::detail
