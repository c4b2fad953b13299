#include <limits>
#include <set>

#include <kolo/core/base/error.h>
#include <kolo/core/base/json_text.h>
#include <kolo/core/base/text.h>
#include <kolo/core/cluster/cluster_json_internal.h>

namespace kolo {
namespace detail {
namespace {

using nlohmann::json;

// What the library would drop silently: of equal keys it keeps the last.
class RefuseTwice {
 public:
  bool operator()(int /*depth*/, json::parse_event_t event, const json& parsed) {
    if (event == json::parse_event_t::object_start) keys_.emplace_back();
    if (event == json::parse_event_t::object_end) keys_.pop_back();
    if (event == json::parse_event_t::key && !keys_.back().insert(parsed.get<std::string>()).second)
      throw InvalidArgumentError("'{}' is listed twice in the JSON of a cluster", parsed.get<std::string>());
    return true;
  }

 private:
  std::vector<std::set<std::string>> keys_;  // of the objects that are open
};

[[noreturn]] void refuse_tasks(const std::string& job) {
  throw InvalidArgumentError(
      "The tasks for job '{}' must be a list or a dictionary from integers to strings.", job);
}

ClusterSpec::Tasks tasks_of(const std::string& job, const json& tasks) {
  if (!tasks.is_array() && !tasks.is_object()) refuse_tasks(job);
  for (const json& address : tasks)
    if (!address.is_string()) refuse_tasks(job);
  if (tasks.is_array()) return tasks.get<std::vector<std::string>>();
  std::map<int, std::string> by_index;
  for (const auto& [key, address] : tasks.items()) {
    const auto index = parse_task_index(key);
    if (!index) throw InvalidArgumentError("Invalid task index {} in job '{}'", key, job);
    by_index[*index] = address.get<std::string>();
  }
  return by_index;
}

}  // namespace

std::optional<int> parse_task_index(std::string_view text) {
  const auto value = parse_int64(text);
  const bool is_canonical = value && std::to_string(*value) == text;  // "07" would be a second name of "7"
  if (!is_canonical || *value < 0 || *value > std::numeric_limits<std::int32_t>::max()) return std::nullopt;
  return static_cast<int>(*value);
}

json parse_object(std::string_view text) {
  json parsed;
  try {
    parsed = json::parse(text, RefuseTwice());
  } catch (const json::exception& error) {
    throw InvalidArgumentError("The description of a cluster is no JSON: {}", error.what());
  }
  if (!parsed.is_object())
    throw InvalidArgumentError("The JSON of a cluster must be an object; it is of type {}",
                               parsed.type_name());
  return parsed;
}

ClusterSpec cluster_of(const json& jobs) {
  std::map<std::string, ClusterSpec::Tasks> tasks;
  for (const auto& [job, list] : jobs.items()) tasks[job] = tasks_of(job, list);
  return ClusterSpec(tasks);
}

}  // namespace detail

ClusterSpec ClusterSpec::from_json(std::string_view text) {
  return detail::cluster_of(detail::parse_object(text));
}

std::string ClusterSpec::to_json() const {
  nlohmann::json jobs = nlohmann::json::object();
  for (const auto& [job, tasks] : jobs_) {
    nlohmann::json& list = jobs[job] = nlohmann::json::object();
    const bool is_dense = !tasks.empty() && tasks.rbegin()->first == num_tasks(job) - 1;
    if (is_dense) list = nlohmann::json::array();
    for (const auto& [index, address] : tasks)
      if (is_dense) list.push_back(address);
      else list[std::to_string(index)] = address;
  }
  return json_text(jobs);
}

}  // namespace kolo
