// Which reductions travel together, and how.
#pragma once

#include <cstdint>
#include <vector>

#include <kolo/collectives/engine/work.h>

namespace kolo::detail {

/// One tensor of an agreed allreduce.
struct Piece {
  int operation = 0;  // its number in the list of requests
  int tensor = 0;     // which of its tensors
  std::int64_t bytes = 0;
};

/// An agreed request, and how many ranks contribute to it: all, or those that have not joined.
struct AgreedReduction {
  const Request* request = nullptr;
  int contributors = 0;
  bool by_all = true;
};

/// Cuts the tensors of `reductions` into runs that are reduced in one go: same dtype, reduction, device and
/// number of contributors, at most fusion_bytes together. Alone are larger tensors, each tensor where
/// fusion_bytes is 0, and Adasum by some ranks: which ones they are counts there. Empty tensors are left out.
/// Runs stand in the order of their first tensors, so all ranks make the same list.
std::vector<std::vector<Piece>> fuse(const std::vector<AgreedReduction>& reductions,
                                     std::int64_t fusion_bytes);

/// The tensors of `run` reduced in one go, in a buffer that takes them one behind the other; a single one in
/// place. There are several only with `fusion_buffer`, which they fit in.
std::shared_ptr<Collective> reduce_run(Communicator& communicator, const std::vector<Piece>& run,
                                       AgreedBatch agreed, std::shared_ptr<Buffer> fusion_buffer);

}  // namespace kolo::detail
