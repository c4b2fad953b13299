// What this start of a job goes on from, where kolorun has started it again.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace kolo {

/// A start of `kolorun --elastic` or `--restarts` after its first one.
struct ElasticRestart {
  int number = 0;                              // of the restart, from 1 on; 0: nothing was started before
  std::vector<std::string> lost_hosts = {};    // with which the start before this one ended
  int ranks_before = 0;                        // of that start
  std::optional<std::int64_t> last_step = {};  // that its ranks have told
  double seconds = 0;                          // from that step, or its end, until kolorun began this start
  bool operator==(const ElasticRestart&) const = default;
};

/// The same on all ranks: kolorun tells it by KOLO_RESTART. Throws InvalidArgumentError for a value that
/// kolorun does not write. Any thread.
ElasticRestart elastic_restart();

namespace detail {
/// As KOLO_RESTART has it: `1:6:84:7.9:node3,node4`, the number, the ranks before, the step, the seconds and
/// the hosts.
std::string to_text(const ElasticRestart& restart);
}  // namespace detail

}  // namespace kolo
