// A program that does the same training steps as kolo-bench train, measured in turns with it.
#pragma once

#include <cstdint>
#include <string>

namespace kolo::bench {

/// What a peer's row says of its work and its time.
struct PeerRow {
  std::string model = {};
  std::int64_t params = 0;
  int ranks = 0;
  int threads = 0;
  std::int64_t batch = 0;  // samples a rank
  double ms = 0;           // median
  double min_ms = 0;
  std::int64_t peak_mib = 0;
};

/// Runs `command --models MODEL --seconds S` by the shell, on all cores that the ranks of this job may use,
/// and returns the row that it prints: the line of its standard output that is a JSON object, with the fields
/// of `kolo-bench train --json`. Collective: rank 0 runs it and returns the row, the others sleep and return
/// an empty one. Throws on all ranks: FailedPreconditionError if the command fails or prints no such row.
PeerRow run_peer(const std::string& command, const std::string& model, double seconds);

}  // namespace kolo::bench
