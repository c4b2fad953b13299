// Which checkpoints of a saver are there, and which of them go when another one comes.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace kolo::detail {

struct CheckpointListOptions {
  int max_to_keep = 5;  // 0: all, and the list has the newest alone
  std::optional<double> keep_every_n_hours = {};
};

/// One thread.
class CheckpointList {
 public:
  using Clock = std::chrono::system_clock;
  explicit CheckpointList(const CheckpointListOptions& options, Clock::time_point now = Clock::now());

  /// `path` has been saved, or is what a training goes on from: it stands last. Returns what is over
  /// max_to_keep now and to be removed: not those that were saved so many hours after the last one that stays
  /// for ever.
  std::vector<std::string> add(const std::string& path, Clock::time_point now = Clock::now());
  /// Of an earlier run, oldest first: they count as saved now.
  void recover(const std::vector<std::string>& paths, Clock::time_point now = Clock::now());
  /// Oldest first.
  const std::vector<std::string>& paths() const { return paths_; }
  /// Writes the state file that names `newest` into its folder.
  void write_state(const std::string& newest, const std::string& filename) const;

 private:
  CheckpointListOptions options_;
  std::optional<Clock::time_point> next_kept_;
  std::vector<std::string> paths_;
  std::vector<Clock::time_point> times_;  // of each
};

}  // namespace kolo::detail
