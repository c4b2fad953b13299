#include <kolo/launcher/banner.h>

#include <algorithm>
#include <initializer_list>
#include <utility>

#include <kolo/core/base/parse_number.h>

namespace kolo::launcher {
namespace {

bool contains(std::string_view text, std::string_view words) {
  return text.find(words) != std::string_view::npos;
}

bool contains_any(std::string_view text, std::initializer_list<std::string_view> phrases) {
  return std::any_of(phrases.begin(), phrases.end(),
                     [&](std::string_view words) { return contains(text, words); });
}

bool is_dashes(std::string_view line) {
  return line.size() >= 60 && line.find_first_not_of('-') == std::string_view::npos;
}

// The word after `words` in `line`, up to a space; "" if they are not there.
std::string word_after(std::string_view line, std::string_view words) {
  const size_t found = line.find(words);
  if (found == std::string_view::npos) return "";
  line.remove_prefix(found + words.size());
  return std::string(line.substr(0, line.find(' ')));
}

// Open MPI 4.1: help-orterun.txt, help-errmgr-base.txt, help-mpi-api.txt.
bool says_job_is_failing(std::string_view line) {
  return contains_any(line, {"Primary job  terminated normally, but", "mpirun noticed that process rank",
                             "mpirun detected that one or more processes exited",
                             "MPI_ABORT was invoked on rank", "lost communication with a remote daemon"});
}

bool is_noise(std::string_view line) {
  return contains_any(
      line, {"mpirun: Forwarding signal", "mpirun: killing job", "mpirun: abort is already in progress"});
}

}  // namespace

void BannerReader::look_for_deaths(std::string_view line) {
  failing_ = failing_ || says_job_is_failing(line);
  if (!dead_rank_ && contains(line, "exited on signal")) {
    const auto rank = parse_int64(word_after(line, "noticed that process rank "));
    const std::string host = word_after(line, " on node ");
    if (rank && !host.empty()) dead_rank_ = DeadRank{static_cast<int>(*rank), host};
  }
  if (lost_host_.empty() && contains(line, "Remote daemon:")) lost_host_ = word_after(line, " on node ");
}

std::vector<std::string> BannerReader::read(std::string_view line) {
  look_for_deaths(line);
  if (!quiet_) return {std::string(line)};
  if (!in_block_ && !is_dashes(line))
    return is_noise(line) ? std::vector<std::string>{} : std::vector{std::string(line)};
  block_.emplace_back(line);
  if (!in_block_) {
    in_block_ = true;
    return {};
  }
  return is_dashes(line) ? finish() : std::vector<std::string>{};
}

std::vector<std::string> BannerReader::finish() {
  in_block_ = false;
  std::vector<std::string> block = std::exchange(block_, {});
  const bool noise = std::any_of(block.begin(), block.end(),
                                 [](const std::string& line) { return says_job_is_failing(line); });
  return noise ? std::vector<std::string>{} : block;
}

}  // namespace kolo::launcher
