// What hydra's mpiexec itself says on how a job ended.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <kolo/launcher/banner.h>

namespace kolo::launcher {

/// Its words come between the lines of the ranks, on stdout as well: a page on the process that a signal
/// ended, and how all of them ended, by host (-print-all-exitcodes), from which follows which rank it was.
/// Where hydra has killed the others by the same signal, that is not known.
class HydraWords {
 public:
  /// One line that no rank has marked; true if it is one of these words.
  bool takes(std::string_view line);
  /// The words that are not only on codes.
  const std::vector<std::string>& page() const { return page_; }

  /// The rank that a signal ended, once all has been read; rank −1: one on that host.
  std::optional<BannerReader::DeadRank> dead_rank() const;
  /// The first rank that ended with an exit code, but for `stopped_code`.
  std::optional<BannerReader::FailedRank> failed_rank(int stopped_code) const;

 private:
  void take_codes(std::string_view codes);

  struct Ended {
    std::string host;
    int signal = 0, code = 0;
  };
  std::vector<std::string> page_;
  std::vector<Ended> ended_;  // by rank
  std::string host_;          // of the process that the page is about
  int signal_ = 0;            // that has ended it
};

}  // namespace kolo::launcher
