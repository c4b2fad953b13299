#include <kolo/core/training/checkpoint_files.h>

#include <algorithm>
#include <filesystem>

#include <kolo/core/base/durable_file.h>

namespace kolo::detail {
namespace {

namespace fs = std::filesystem;

CheckpointList::Clock::duration hours(double count) {
  return std::chrono::duration_cast<CheckpointList::Clock::duration>(
      std::chrono::duration<double, std::ratio<3600>>(count));
}

}  // namespace

CheckpointList::CheckpointList(const CheckpointListOptions& options, Clock::time_point now)
    : options_(options) {
  if (options_.keep_every_n_hours) next_kept_ = now + hours(*options_.keep_every_n_hours);
}

std::vector<std::string> CheckpointList::add(const std::string& path, Clock::time_point now) {
  if (const auto known = std::find(paths_.begin(), paths_.end(), path); known != paths_.end()) {
    times_.erase(times_.begin() + (known - paths_.begin()));
    paths_.erase(known);
  }
  if (options_.max_to_keep == 0) paths_.clear(), times_.clear();
  paths_.push_back(path);
  times_.push_back(now);
  std::vector<std::string> outdated;
  while (options_.max_to_keep > 0 && paths_.size() > static_cast<std::size_t>(options_.max_to_keep)) {
    if (next_kept_ && times_.front() > *next_kept_) *next_kept_ += hours(*options_.keep_every_n_hours);
    else outdated.push_back(paths_.front());
    paths_.erase(paths_.begin());
    times_.erase(times_.begin());
  }
  return outdated;
}

void CheckpointList::recover(const std::vector<std::string>& paths, Clock::time_point now) {
  paths_ = paths;
  times_.assign(paths.size(), now);
}

void CheckpointList::write_state(const std::string& newest, const std::string& filename) const {
  const std::string folder = folder_of(newest);
  CheckpointState state{.model_checkpoint_path = fs::path(newest).filename().string(),
                        .all_model_checkpoint_paths = {}};
  for (const std::string& listed : paths_)
    state.all_model_checkpoint_paths.push_back(
        folder_of(listed) == folder ? fs::path(listed).filename().string() : fs::absolute(listed).string());
  write_checkpoint_state(state, folder, filename);
}

}  // namespace kolo::detail
