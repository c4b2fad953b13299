#include <kolo/collectives/transport/mpi_node_view.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <kolo/collectives/transport/mpi_handles.h>
#include <kolo/core/base/error.h>
#include <kolo/core/base/log.h>

namespace kolo::detail {
namespace {

// Of the 47 bits of addresses that a process has: all of a node's memories are mapped by each of its ranks.
constexpr std::int64_t kMappedBytes = std::int64_t{1} << 46;

// One for the process, made when it first has neighbours and never taken down: tensors may lie in it to the
// end.
std::shared_ptr<NodeMemory> process_memory(int neighbours) {
  static auto* const memory =
      new std::shared_ptr<NodeMemory>(std::make_shared<NodeMemory>(kMappedBytes / neighbours));
  return *memory;
}

}  // namespace

NodeView connect_node_memory(MPI_Comm comm, const Topology& topology) {
  int rank = 0;
  check_mpi(MPI_Comm_rank(comm, &rank), "MPI_Comm_rank");
  const auto& neighbours = topology.ranks_of(topology.node_of(rank));
  const bool is_alone = neighbours.size() == 1;
  std::shared_ptr<NodeMemory> own;
  std::string problem;
  NodeMemory::Address address;  // of 0 bytes: there is none
  try {
    if (!is_alone) own = process_memory(static_cast<int>(neighbours.size()));
    if (own) address = own->address();
  } catch (const Error& error) {
    problem = error.what();
  }
  std::vector<NodeMemory::Address> addresses(topology.ranks());
  check_mpi(
      MPI_Allgather(&address, sizeof address, MPI_BYTE, addresses.data(), sizeof address, MPI_BYTE, comm),
      "MPI_Allgather");
  std::vector<std::shared_ptr<const MemoryMapping>> peers(neighbours.size());
  bool reached = own != nullptr;
  try {
    for (std::size_t place = 0; reached && place < neighbours.size(); ++place) {
      if (neighbours[place] == rank) continue;
      const auto& peer = addresses[neighbours[place]];
      reached = peer.bytes > 0;
      if (reached) peers[place] = NodeView::map(peer);
    }
  } catch (const Error& error) {
    problem = error.what();
    reached = false;
  }
  const int done = reached ? 1 : 0, told = problem.empty() ? 0 : 1;
  const int answer[] = {done, told};
  std::vector<int> answers(static_cast<std::size_t>(topology.ranks()) * 2);
  check_mpi(MPI_Allgather(answer, 2, MPI_INT, answers.data(), 2, MPI_INT, comm), "MPI_Allgather");
  bool all_reached = true, first_problem = true;
  for (const int neighbour : neighbours) {
    all_reached = all_reached && answers[2 * neighbour] != 0;
    if (neighbour < rank && answers[2 * neighbour + 1] != 0) first_problem = false;
  }
  if (!problem.empty() && first_problem)
    log_warning(
        "the ranks of this host do not share memory and exchange messages through MPI, which is slower: {}",
        problem);
  return all_reached ? NodeView(std::move(own), topology.local_rank(rank), std::move(peers)) : NodeView();
}

}  // namespace kolo::detail
