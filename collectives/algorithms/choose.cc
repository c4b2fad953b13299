#include <kolo/collectives/algorithms/choose.h>

namespace kolo {

std::string choose_allreduce(const AllreduceCase& which, const CostModel& costs) {
  return which.shares_memory ? "shared_memory" : fastest_allreduce(costs, which.topology, which.bytes);
}

}  // namespace kolo
