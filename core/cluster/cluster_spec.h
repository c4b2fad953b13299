// Which tasks a cluster has: its jobs, and where each of their tasks listens.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kolo {

struct ClusterEnvironment;

/// A value: jobs by name, and in each the addresses of its tasks by index. All tasks of a cluster are given
/// the same one. An address is `host:port`, `a.b.c.d:port`, `[v6]:port` or `unix:/path`; servers refuse a
/// malformed one, a spec keeps it as it is.
class ClusterSpec {
 public:
  /// The tasks of one job: addresses of the tasks 0, 1, …, or addresses by index. None is legal, too.
  class Tasks {
   public:
    Tasks() = default;
    Tasks(std::initializer_list<std::string> addresses) : Tasks(std::vector<std::string>(addresses)) {}
    Tasks(std::initializer_list<std::pair<const int, std::string>> addresses) : by_index_(addresses) {}
    Tasks(const std::vector<std::string>& addresses);
    Tasks(std::map<int, std::string> addresses) : by_index_(std::move(addresses)) {}
    const std::map<int, std::string>& by_index() const { return by_index_; }

   private:
    std::map<int, std::string> by_index_;
  };

  /// No job at all.
  ClusterSpec() = default;
  /// ClusterSpec({{"ps", {"p:1", "q:2"}}, {"eval", {{7, "x:70"}}}, {"idle", {}}}). Throws
  /// InvalidArgumentError `Invalid job name '<j>'` ([A-Za-z][A-Za-z0-9_]*), `Job '<j>' is listed twice`,
  /// `Invalid task index <i> in job
  /// '<j>'` (0 … 2³¹−1), `Cluster lists <addr> twice: /job:<a>/task:<i> and /job:<b>/task:<k>` (port 0 apart,
  /// with which each task listens somewhere else).
  ClusterSpec(std::initializer_list<std::pair<const std::string, Tasks>> jobs);
  explicit ClusterSpec(const std::map<std::string, Tasks>& jobs);
  explicit ClusterSpec(const std::map<std::string, std::vector<std::string>>& jobs);
  explicit ClusterSpec(std::map<std::string, std::map<int, std::string>> jobs);

  /// `{"ps": ["p:1", "q:2"], "eval": {"7": "x:70"}}`. Throws InvalidArgumentError as the constructor does,
  /// `The tasks for job '<j>' must be a list or a dictionary from integers to strings.`, and for what is no
  /// JSON or names something twice.
  static ClusterSpec from_json(std::string_view text);
  /// `ps|p:1;q:2,worker|w:3`; a job without tasks is `idle|`. Throws InvalidArgumentError as the constructor
  /// does, `Job '<j>' is listed twice`, and for a part that is no job.
  static ClusterSpec from_text(std::string_view text);
  /// What wire_form() made. Throws InvalidArgumentError for all else.
  static ClusterSpec from_wire_form(std::string_view bytes);
  /// What `KOLO_CLUSTER`, else `TF_CONFIG`, tells this process; without both there is no cluster. Throws
  /// InvalidArgumentError naming the variable that is malformed.
  static ClusterEnvironment from_environment();

  /// False where there is no job.
  explicit operator bool() const { return !jobs_.empty(); }
  bool operator==(const ClusterSpec&) const = default;

  /// Jobs and their tasks, sorted.
  const std::map<std::string, std::map<int, std::string>>& as_map() const { return jobs_; }
  std::vector<std::string> jobs() const;
  // Of one job. Throw InvalidArgumentError `No such job in cluster: '<j>'`.
  int num_tasks(const std::string& job) const;
  std::vector<int> task_indices(const std::string& job) const;
  /// Throws InvalidArgumentError `No task with index <i> in job '<j>'`.
  const std::string& task_address(const std::string& job, int index) const;
  /// As a list from task 0 to the last; none where an index has no task. Throws ResourceExhaustedError for a
  /// job whose last index is a million or more.
  std::vector<std::optional<std::string>> job_tasks(const std::string& job) const;

  /// As from_json takes it: a job whose indices are 0 … n−1 is a list, any other an object.
  std::string to_json() const;
  /// ClusterSpec({'eval': {7: 'x:70'}, 'idle': {}, 'ps': ['p:1', 'q:2']})
  std::string to_string() const;
  /// Bytes that are equal for equal specs.
  std::string wire_form() const;
  /// XXH3-64 of the wire form: by it tasks know that they belong together.
  std::uint64_t fingerprint() const;

 private:
  void check() const;
  const std::map<int, std::string>& tasks_of(const std::string& job) const;

  std::map<std::string, std::map<int, std::string>> jobs_;
};

/// Where a process stands in its cluster.
struct ClusterEnvironment {
  ClusterSpec cluster = {};
  std::string job_name = {};  // "" without a cluster
  int task_index = 0;
  /// The job is `chief` or `master`; in a cluster that has neither job, worker 0; without a cluster, always.
  bool is_chief = true;
};

}  // namespace kolo
