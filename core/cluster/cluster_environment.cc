#include <kolo/core/base/env.h>
#include <kolo/core/base/error.h>
#include <kolo/core/base/json_text.h>
#include <kolo/core/cluster/cluster_json_internal.h>

namespace kolo {
namespace {

using nlohmann::json;

const json* find(const json& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() ? nullptr : &*found;
}

// Older writers of TF_CONFIG put the index into quotes.
std::optional<int> task_index_of(const json& index) {
  if (index.is_string()) return detail::parse_task_index(index.get<std::string>());
  return index.is_number_integer() ? detail::parse_task_index(json_text(index)) : std::nullopt;
}

void read_task(const json& task, ClusterEnvironment& environment) {
  const json* const type = task.is_object() ? find(task, "type") : nullptr;
  const json* const index = task.is_object() ? find(task, "index") : nullptr;
  if (type == nullptr || index == nullptr || !type->is_string())
    throw InvalidArgumentError(R"(The task must be given as {{"type":"worker","index":0}}; it is {})",
                               json_text(task));
  environment.job_name = type->get<std::string>();
  const ClusterSpec checked({{environment.job_name, {}}});
  const auto number = task_index_of(*index);
  if (!number)
    throw InvalidArgumentError("Invalid task index {} in job '{}'", json_text(*index), environment.job_name);
  environment.task_index = *number;
}

bool is_chief(const ClusterEnvironment& environment) {
  const auto& jobs = environment.cluster.as_map();
  if (environment.job_name == "chief" || environment.job_name == "master") return true;
  return environment.job_name == "worker" && environment.task_index == 0 && jobs.count("chief") == 0 &&
         jobs.count("master") == 0;
}

ClusterEnvironment environment_of(const std::string& text) {
  const json parsed = detail::parse_object(text);
  const json *const jobs = find(parsed, "cluster"), *const task = find(parsed, "task");
  ClusterEnvironment environment;
  if (jobs == nullptr && task == nullptr) return environment;
  if (jobs != nullptr && !jobs->is_object())
    throw InvalidArgumentError("The cluster must be an object of jobs; it is of type {}", jobs->type_name());
  if (jobs != nullptr) environment.cluster = detail::cluster_of(*jobs);
  read_task(task == nullptr ? json() : *task, environment);
  environment.is_chief = is_chief(environment);
  return environment;
}

}  // namespace

ClusterEnvironment ClusterSpec::from_environment() {
  for (const char* const name : {"KOLO_CLUSTER", "TF_CONFIG"}) {
    const auto text = env_string(name);
    if (!text) continue;
    try {
      return environment_of(*text);
    } catch (const InvalidArgumentError& error) {
      throw InvalidArgumentError("{} (in the environment's {})", error.what(), name);
    }
  }
  return {};
}

}  // namespace kolo
