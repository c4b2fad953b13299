// The variables of a session by name: which task has which. Contract: master.h.
#include <map>
#include <utility>

#include <kolo/core/cluster/master/master_session_internal.h>
#include <kolo/core/cluster/master/task_error.h>
#include <kolo/core/ops/variables.h>

#include <kolo/core/cluster/rpc/messages_internal.h>

namespace kolo::detail {
namespace {

std::string text_attr(const Node& node, const std::string& name) {
  const auto attr = node.attrs().find(name);
  if (attr == node.attrs().end()) return "";
  const auto* text = std::get_if<std::string>(&attr->second.value());
  return text != nullptr ? *text : "";
}

VariableKey key_of_variable(const Node& storage) {
  const std::string shared = text_attr(storage, "shared_name");
  return {.container = text_attr(storage, "container"), .name = shared.empty() ? storage.name() : shared};
}

// So many variables behind one another that lie on one task: they are asked for in one call, and the order of
// all stays as it is.
template <typename Located>
std::size_t end_of_task(const std::vector<Located>& variables, std::size_t begin) {
  std::size_t end = begin + 1;
  while (end < variables.size() && variables[end].task == variables[begin].task) ++end;
  return end;
}

template <typename Located>
std::vector<VariableKey> keys_between(const std::vector<Located>& variables, std::size_t begin,
                                      std::size_t end) {
  std::vector<VariableKey> keys;
  for (std::size_t i = begin; i < end; ++i) keys.push_back(variables[i].key);
  return keys;
}

// What `call` throws is the task's.
template <typename Call>
void of_task(const std::string& task, const Call& call) {
  try {
    call();
  } catch (...) {
    std::rethrow_exception(from_task(task, std::current_exception()));
  }
}

}  // namespace

std::vector<MasterSession::LocatedVariable> MasterSession::locate(const std::vector<std::string>& names,
                                                                  const Deadline& deadline) {
  check_whole();
  std::vector<LocatedVariable> variables;
  std::set<std::string> tasks;
  for (const std::string& name : names) {
    const Node* const node = graph_.find_node(name);
    if (node == nullptr || !node->schema().is_variable_storage() || &whole_storage(*node) != node)
      throw NotFoundError("\"{}\" is no variable of this session's graph", name);
    variables.push_back({task_of_device(placer_.device_of(*node)), key_of_variable(*node)});
    tasks.insert(variables.back().task);
  }
  for (const std::string& task : tasks) check_task(task, deadline);
  return variables;
}

void MasterSession::for_each_task(
    const std::vector<LocatedVariable>& variables,
    const std::function<void(Worker&, const std::vector<VariableKey>&, std::size_t)>& call) {
  for (std::size_t begin = 0; begin < variables.size();) {
    const std::size_t end = end_of_task(variables, begin);
    const std::string& task = variables[begin].task;
    of_task(task,
            [&] { call(*environment_.peers->worker(task), keys_between(variables, begin, end), begin); });
    begin = end;
  }
}

void MasterSession::get_variables(const std::vector<std::string>& names,
                                  const std::function<void(std::size_t, Tensor)>& on_value,
                                  const Deadline& deadline) {
  const Use use(*this, deadline);
  const std::vector<LocatedVariable> variables = locate(names, use.deadline());
  for_each_task(variables, [&](Worker& worker, const std::vector<VariableKey>& keys, std::size_t first) {
    worker.get_variables(
        options_.handle, keys,
        [&](std::size_t key, Tensor value) { on_value(first + key, std::move(value)); }, use.deadline());
  });
}

void MasterSession::set_variables(const std::vector<std::string>& names,
                                  const std::function<Tensor(std::size_t)>& value, const Deadline& deadline) {
  const Use use(*this, deadline);
  const std::vector<LocatedVariable> variables = locate(names, use.deadline());
  for_each_task(variables, [&](Worker& worker, const std::vector<VariableKey>& keys, std::size_t first) {
    worker.set_variables(
        options_.handle, keys, [&](std::size_t key) { return value(first + key); }, use.deadline());
  });
}

std::vector<bool> MasterSession::are_initialized(const std::vector<std::string>& names,
                                                 const Deadline& deadline) {
  const Use use(*this, deadline);
  const std::vector<LocatedVariable> variables = locate(names, use.deadline());
  std::map<std::string, std::vector<std::size_t>> by_task;
  for (std::size_t i = 0; i < variables.size(); ++i) by_task[variables[i].task].push_back(i);
  std::vector<bool> initialized(names.size(), false);
  for (const auto& [task, indices] : by_task) {
    std::vector<VariableKey> keys;
    for (const std::size_t i : indices) keys.push_back(variables[i].key);
    of_task(task, [&, &task = task, &indices = indices] {
      const auto some = from_def(environment_.peers->worker(task)->call<AreInitialized>(
                                     to_def(options_.handle, keys), use.deadline()),
                                 keys.size());
      for (std::size_t i = 0; i < indices.size(); ++i) initialized[indices[i]] = some.at(i);
    });
  }
  return initialized;
}

}  // namespace kolo::detail
