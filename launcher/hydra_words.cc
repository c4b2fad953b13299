#include <kolo/launcher/hydra_words.h>

#include <sys/wait.h>

#include <algorithm>
#include <iterator>

#include <kolo/core/base/text.h>
#include <kolo/launcher/host_lists.h>

namespace kolo::launcher {
namespace {

bool is_rule(std::string_view line) {
  return line.size() >= 60 && line.find_first_not_of('=') == std::string_view::npos;
}

// MPICH 4.0: "=   PID 7 RUNNING AT node1"; Intel MPI: "=   RANK 1 PID 7 RUNNING AT node1".
bool is_of_page(std::string_view line) {
  constexpr std::string_view kStarts[] = {"=   ", "YOUR APPLICATION TERMINATED WITH THE EXIT STRING",
                                          "This typically refers to a problem with your application",
                                          "Please see the FAQ page for debugging suggestions"};
  return is_rule(line) || std::any_of(std::begin(kStarts), std::end(kStarts),
                                      [&](std::string_view start) { return line.starts_with(start); });
}

int number_after(std::string_view line, std::string_view words) {
  std::string word = word_after(line, words);
  while (!word.empty() && word.back() == ')') word.pop_back();
  return static_cast<int>(parse_int64(word).value_or(0));
}

}  // namespace

// `[node1] 0,768`: as wait() gives them, in the order of the ranks.
void HydraWords::take_codes(std::string_view codes) {
  const size_t close = codes.find("] ");
  if (!codes.starts_with('[') || close == std::string_view::npos) return;
  const std::string host(codes.substr(1, close - 1));
  codes.remove_prefix(close + 2);
  while (!codes.empty()) {
    const size_t comma = std::min(codes.find(','), codes.size());
    if (const auto number = parse_int64(codes.substr(0, comma))) {
      const int status = static_cast<int>(*number);
      ended_.push_back(
          {host, WIFSIGNALED(status) ? WTERMSIG(status) : 0, WIFEXITED(status) ? WEXITSTATUS(status) : 0});
    }
    codes.remove_prefix(std::min(comma + 1, codes.size()));
  }
}

// "[mpiexec@node1] Exit codes: [node1] 0,768", and a line "[node2] 0,0" for each further host.
bool HydraWords::takes(std::string_view line) {
  constexpr std::string_view kCodes = "Exit codes: ";
  if (const size_t codes = line.find(kCodes);
      line.starts_with("[mpiexec@") && codes != std::string_view::npos)
    return take_codes(line.substr(codes + kCodes.size())), true;
  if (!ended_.empty() && line.starts_with('[') && !line.starts_with("[mpiexec@"))
    return take_codes(line), true;
  if (!is_of_page(line)) return false;
  page_.emplace_back(line);
  if (host_.empty()) host_ = word_after(line, " RUNNING AT ");
  for (const char* words : {"(signal ", "KILLED BY SIGNAL: "})
    if (signal_ == 0) signal_ = number_after(line, words);
  return true;
}

std::optional<BannerReader::DeadRank> HydraWords::dead_rank() const {
  if (signal_ == 0) return std::nullopt;
  const auto is_it = [&](const Ended& ended) {
    return ended.signal == signal_ && (host_.empty() || ended.host == host_);
  };
  const auto first = std::find_if(ended_.begin(), ended_.end(), is_it);
  const bool is_known = std::count_if(ended_.begin(), ended_.end(), is_it) == 1;
  return BannerReader::DeadRank{is_known ? static_cast<int>(first - ended_.begin()) : -1, host_, signal_};
}

std::optional<BannerReader::FailedRank> HydraWords::failed_rank(int stopped_code) const {
  for (size_t rank = 0; rank < ended_.size(); ++rank)
    if (const int code = ended_[rank].code; code != 0 && code != stopped_code)
      return BannerReader::FailedRank{
          .rank = static_cast<int>(rank), .host = ended_[rank].host, .code = code};
  return std::nullopt;
}

}  // namespace kolo::launcher
