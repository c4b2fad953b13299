#include <kolo/collectives/algorithms/choose.h>

namespace kolo {

std::string choose_allreduce(const AllreduceCase& which) {
  return which.shares_memory ? "shared_memory" : "ring";
}

}  // namespace kolo
