#include <kolo/core/cluster/cluster_spec.h>

#define XXH_INLINE_ALL
#include <fmt/format.h>
#include <xxhash.h>

#include <limits>

#include <kolo/core/base/error.h>
#include <kolo/core/cluster/task_address.h>
#include <kolo/core/device/device_name.h>
#include "core/cluster/cluster_def.pb.h"

namespace kolo {
namespace {

constexpr int kLongestList = 1000000;

bool is_job_name(const std::string& name) {
  const auto spec = parse_device_spec("/job:" + name);
  return spec && spec->job == name;
}

std::string task_name(const std::string& job, int index) {
  return fmt::format("/job:{}/task:{}", job, index);
}

// The parts of `text` between separators; of an empty text none.
std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(separator), text.size());
    parts.push_back(text.substr(0, end));
    if (end + 1 == text.size()) parts.emplace_back();  // what a separator at the end leaves behind it
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

// As Python prints a string.
std::string quoted(const std::string& text) {
  std::string result = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') result += '\\';
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      result += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    else result += c;
  }
  return result + "'";
}

std::string printed(const std::map<int, std::string>& tasks) {
  const bool is_list = !tasks.empty() && tasks.rbegin()->first + 1LL == static_cast<long long>(tasks.size());
  std::string text;
  for (const auto& [index, address] : tasks) {
    if (!text.empty()) text += ", ";
    text += is_list ? quoted(address) : fmt::format("{}: {}", index, quoted(address));
  }
  return is_list ? "[" + text + "]" : "{" + text + "}";
}

}  // namespace

ClusterSpec::Tasks::Tasks(const std::vector<std::string>& addresses) {
  for (const std::string& address : addresses)
    by_index_.emplace_hint(by_index_.end(), static_cast<int>(by_index_.size()), address);
}

ClusterSpec::ClusterSpec(std::initializer_list<std::pair<const std::string, Tasks>> jobs) {
  for (const auto& [job, tasks] : jobs)
    if (!jobs_.emplace(job, tasks.by_index()).second)
      throw InvalidArgumentError("Job '{}' is listed twice", job);
  check();
}

ClusterSpec::ClusterSpec(const std::map<std::string, Tasks>& jobs) {
  for (const auto& [job, tasks] : jobs) jobs_[job] = tasks.by_index();
  check();
}

ClusterSpec::ClusterSpec(const std::map<std::string, std::vector<std::string>>& jobs) {
  for (const auto& [job, tasks] : jobs) jobs_[job] = Tasks(tasks).by_index();
  check();
}

ClusterSpec::ClusterSpec(std::map<std::string, std::map<int, std::string>> jobs) : jobs_(std::move(jobs)) {
  check();
}

void ClusterSpec::check() const {
  std::map<std::string, std::string> tasks_at;  // by address, in the one form that each has
  for (const auto& [job, tasks] : jobs_) {
    if (!is_job_name(job)) throw InvalidArgumentError("Invalid job name '{}'", job);
    for (const auto& [index, address] : tasks) {
      if (index < 0) throw InvalidArgumentError("Invalid task index {} in job '{}'", index, job);
      const auto parsed = detail::parse_task_address(address);
      if (parsed && parsed->path.empty() && parsed->port == 0) continue;
      const auto [known, is_new] =
          tasks_at.emplace(parsed ? parsed->to_string() : address, task_name(job, index));
      if (!is_new)
        throw InvalidArgumentError("Cluster lists {} twice: {} and {}", address, known->second,
                                   task_name(job, index));
    }
  }
}

ClusterSpec ClusterSpec::from_text(std::string_view text) {
  std::map<std::string, Tasks> jobs;
  for (const std::string_view part : split(text, ',')) {
    const std::size_t bar = part.find('|');
    if (bar == std::string_view::npos)
      throw InvalidArgumentError("\"{}\" is no job of a cluster; it is written job|address;address", part);
    std::vector<std::string> addresses;
    for (const std::string_view address : split(part.substr(bar + 1), ';')) addresses.emplace_back(address);
    if (!jobs.emplace(part.substr(0, bar), addresses).second)
      throw InvalidArgumentError("Job '{}' is listed twice", part.substr(0, bar));
  }
  return ClusterSpec(jobs);
}

ClusterSpec ClusterSpec::from_wire_form(std::string_view bytes) {
  cluster::ClusterDef def;
  const bool fits = bytes.size() <= static_cast<std::size_t>(std::numeric_limits<int>::max());
  if (!fits || !def.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
    throw InvalidArgumentError("{} bytes are no cluster in its wire form", bytes.size());
  std::map<std::string, Tasks> jobs;
  for (const cluster::JobDef& job : def.jobs()) {
    std::map<int, std::string> tasks;
    for (const cluster::TaskDef& task : job.tasks())
      if (!tasks.emplace(task.index(), task.address()).second)
        throw InvalidArgumentError("Task {} of job '{}' is listed twice", task.index(), job.name());
    if (!jobs.emplace(job.name(), std::move(tasks)).second)
      throw InvalidArgumentError("Job '{}' is listed twice", job.name());
  }
  return ClusterSpec(jobs);
}

std::vector<std::string> ClusterSpec::jobs() const {
  std::vector<std::string> names;
  for (const auto& [job, tasks] : jobs_) names.push_back(job);
  return names;
}

const std::map<int, std::string>& ClusterSpec::tasks_of(const std::string& job) const {
  const auto found = jobs_.find(job);
  if (found == jobs_.end()) throw InvalidArgumentError("No such job in cluster: '{}'", job);
  return found->second;
}

int ClusterSpec::num_tasks(const std::string& job) const { return static_cast<int>(tasks_of(job).size()); }

std::vector<int> ClusterSpec::task_indices(const std::string& job) const {
  std::vector<int> indices;
  for (const auto& [index, address] : tasks_of(job)) indices.push_back(index);
  return indices;
}

const std::string& ClusterSpec::task_address(const std::string& job, int index) const {
  const auto& tasks = tasks_of(job);
  const auto found = tasks.find(index);
  if (found == tasks.end()) throw InvalidArgumentError("No task with index {} in job '{}'", index, job);
  return found->second;
}

std::vector<std::optional<std::string>> ClusterSpec::job_tasks(const std::string& job) const {
  const auto& tasks = tasks_of(job);
  const int last = tasks.empty() ? -1 : tasks.rbegin()->first;
  if (last >= kLongestList)
    throw ResourceExhaustedError(
        "Job '{}' has a task {}: as a list it would be too long; ask for its indices", job, last);
  std::vector<std::optional<std::string>> list(static_cast<std::size_t>(last + 1));
  for (const auto& [index, address] : tasks) list[static_cast<std::size_t>(index)] = address;
  return list;
}

std::string ClusterSpec::to_string() const {
  std::string text;
  for (const auto& [job, tasks] : jobs_)
    text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", quoted(job), printed(tasks));
  return "ClusterSpec({" + text + "})";
}

std::string ClusterSpec::wire_form() const {
  cluster::ClusterDef def;
  for (const auto& [name, tasks] : jobs_) {
    cluster::JobDef& job = *def.add_jobs();
    job.set_name(name);
    for (const auto& [index, address] : tasks) {
      cluster::TaskDef& task = *job.add_tasks();
      task.set_index(index);
      task.set_address(address);
    }
  }
  return def.SerializeAsString();
}

std::uint64_t ClusterSpec::fingerprint() const {
  const std::string bytes = wire_form();
  return XXH3_64bits(bytes.data(), bytes.size());
}

}  // namespace kolo
