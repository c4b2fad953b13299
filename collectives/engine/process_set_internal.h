// Makes process sets of lists that the ranks have agreed on.
#pragma once

#include <vector>

#include <kolo/collectives/engine/process_set.h>

namespace kolo::detail {

struct ProcessSetAccess {
  /// Collective over all ranks, which give the same lists; a rank is in one of them at most.
  static std::vector<ProcessSet> make(const std::vector<std::vector<int>>& lists);
  /// Whether there is such a set is found when it is used.
  static ProcessSet of_id(int id) { return ProcessSet(id); }
};

}  // namespace kolo::detail
