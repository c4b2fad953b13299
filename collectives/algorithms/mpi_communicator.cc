#include <kolo/collectives/algorithms/mpi_communicator.h>

#include <utility>
#include <vector>

#include <kolo/collectives/algorithms/adasum.h>
#include <kolo/collectives/algorithms/allreduce_registry.h>
#include <kolo/collectives/algorithms/barrier.h>
#include <kolo/collectives/algorithms/broadcast.h>
#include <kolo/collectives/algorithms/choose.h>
#include <kolo/collectives/algorithms/exchange.h>
#include <kolo/collectives/algorithms/mpi_allreduce.h>
#include <kolo/collectives/algorithms/ring.h>
#include <kolo/collectives/algorithms/widened.h>
#include <kolo/core/base/error.h>
#include <kolo/core/base/log.h>

namespace kolo::detail {
namespace {

constexpr std::size_t kShortAllgatherBytes = std::size_t{64} << 10;  // of all blocks

}  // namespace

MpiCommunicator::MpiCommunicator(MpiComm comm, Topology topology, std::string allreduce,
                                 std::int64_t chunk_bytes, NodeView node)
    : comm_(std::move(comm)),
      topology_(std::move(topology)),
      mpi_network_(comm_.get()),
      view_(std::move(node)),
      node_(connect_node()),
      allreduce_(std::move(allreduce)),
      chunk_bytes_(chunk_bytes) {}

std::unique_ptr<NodeCollectives> MpiCommunicator::connect_node() const {
  std::unique_ptr<NodeChannel> channel;
  try {
    if (view_ && view_.size() > 1) channel = std::make_unique<NodeChannel>(view_);
  } catch (const ResourceExhaustedError& error) {
    log_warning("{}; its messages go through MPI", error.what());
  }
  constexpr std::int64_t kNone = -1;
  const std::int64_t own = channel ? channel->own_offset() : kNone;
  std::vector<std::int64_t> all(size());
  check_mpi(MPI_Allgather(&own, 1, MPI_INT64_T, all.data(), 1, MPI_INT64_T, comm_.get()), "MPI_Allgather");
  std::vector<std::int64_t> offsets;
  for (const int neighbour : topology_.ranks_of(topology_.node_of(rank()))) offsets.push_back(all[neighbour]);
  if (!channel || std::count(offsets.begin(), offsets.end(), kNone) > 0) return nullptr;
  channel->connect(offsets);
  return std::make_unique<NodeCollectives>(std::move(channel));
}

std::shared_ptr<Collective> MpiCommunicator::make_allreduce(const TypedBuffer& buffer, ReduceOp op) {
  const std::int64_t bytes = buffer.elements * static_cast<std::int64_t>(size_of(buffer.dtype));
  const std::string name =
      allreduce_ != "auto"
          ? allreduce_
          : choose_allreduce(
                {.topology = topology_, .shares_memory = shared() != nullptr, .bytes = bytes, .op = op},
                costs_);
  if (name == "mpi")
    return widened_where(f32_wire_, buffer,
                         [&](const TypedBuffer& sent) { return mpi_allreduce(comm_.get(), sent, op); });
  if (name == "shared_memory") {
    if (shared() != nullptr) return shared()->allreduce(buffer, op);
    throw FailedPreconditionError("KOLO_ALLREDUCE=shared_memory: {} ranks on {} nodes do not share memory{}",
                                  size(), topology_.nodes(),
                                  topology_.nodes() > 1 ? "" : ", see the warning at the start");
  }
  return carried(kolo::make_allreduce(name, context(), buffer, op));
}

// Across nodes only if that was asked for: the result must not depend on where ranks run.
std::shared_ptr<Collective> MpiCommunicator::make_adasum(const TypedBuffer& buffer,
                                                         std::span<const std::int64_t> tensor_elements) {
  return carried(widened_where(f32_wire_, buffer, [&](const TypedBuffer& sent) {
    return allreduce_ == "hierarchical" ? hierarchical_adasum(context(), sent, tensor_elements)
                                        : adasum_allreduce(context(), sent, tensor_elements);
  }));
}

// Another algorithm that was asked for reduces the whole array, of which a block is kept: in its own order.
std::shared_ptr<Collective> MpiCommunicator::make_reduce_scatter(const TypedBuffer& buffer,
                                                                 std::span<const std::int64_t> counts,
                                                                 ReduceOp op) {
  if (shared() != nullptr && (allreduce_ == "auto" || allreduce_ == "shared_memory"))
    return shared()->reduce_scatter(buffer, counts, op);
  if (allreduce_ != "auto" && allreduce_ != "ring") return make_allreduce(buffer, op);
  return carried(widened_where(f32_wire_, buffer, [&](const TypedBuffer& sent) {
    return ring_reduce_scatter(context(), sent, counts, op);
  }));
}

void MpiCommunicator::check_root(int root) const {
  if (root < 0 || root >= size())
    throw InvalidArgumentError("root rank {} is outside the process set of {} ranks", root, size());
}

std::shared_ptr<Collective> MpiCommunicator::broadcast(std::span<std::byte> bytes, int root) {
  check_root(root);
  if (shared() != nullptr) return shared()->broadcast(bytes, root);
  return kolo::broadcast(mpi_network_, bytes, root, chunk_bytes_);
}

// Short blocks go straight to every rank, since a ring's steps cost more than their bytes.
std::shared_ptr<Collective> MpiCommunicator::allgather(std::span<const std::span<std::byte>> blocks) {
  if (static_cast<int>(blocks.size()) != size())
    throw InvalidArgumentError("allgather over {} ranks was given {} blocks; it needs one for each rank",
                               size(), blocks.size());
  if (shared() != nullptr) return shared()->allgather(blocks);
  std::size_t bytes = 0;
  for (const auto& block : blocks) bytes += block.size();
  if (bytes > kShortAllgatherBytes) return ring_allgather(mpi_network_, blocks, chunk_bytes_);
  return exchange(mpi_network_, std::vector<std::span<const std::byte>>(blocks.size(), blocks[rank()]),
                  blocks);
}

std::shared_ptr<Collective> MpiCommunicator::alltoall(std::span<const std::span<const std::byte>> out,
                                                      std::span<const std::span<std::byte>> in) {
  return carried(exchange(network(), out, in));
}

std::shared_ptr<Collective> MpiCommunicator::gather(std::span<const std::byte> own,
                                                    std::span<const std::span<std::byte>> blocks, int root) {
  check_root(root);
  std::vector<std::span<const std::byte>> out(size());
  out[root] = own;
  return carried(exchange(network(), out, blocks));
}

std::shared_ptr<Collective> MpiCommunicator::scatter(std::span<const std::span<const std::byte>> blocks,
                                                     std::span<std::byte> own, int root) {
  check_root(root);
  std::vector<std::span<std::byte>> in(size());
  in[root] = own;
  return carried(exchange(network(), blocks, in));
}

std::shared_ptr<Collective> MpiCommunicator::barrier() {
  if (shared() != nullptr) return shared()->barrier();
  return dissemination_barrier(mpi_network_);
}

std::shared_ptr<Communicator> MpiCommunicator::duplicate() {
  auto copy = std::make_shared<MpiCommunicator>(MpiComm::duplicate(comm_.get()), topology_, allreduce_,
                                                chunk_bytes_, view_);
  copy->tune(costs_, f32_wire_);
  return copy;
}

std::shared_ptr<Communicator> MpiCommunicator::subset(std::span<const int> members, int tag) {
  MPI_Group all = MPI_GROUP_NULL, chosen = MPI_GROUP_NULL;
  MPI_Comm comm = MPI_COMM_NULL;
  check_mpi(MPI_Comm_group(comm_.get(), &all), "MPI_Comm_group");
  check_mpi(MPI_Group_incl(all, static_cast<int>(members.size()), members.data(), &chosen), "MPI_Group_incl");
  check_mpi(MPI_Comm_create_group(comm_.get(), chosen, tag, &comm), "MPI_Comm_create_group");
  MPI_Group_free(&chosen);
  MPI_Group_free(&all);
  std::vector<int> neighbours;  // those of the members that are on this node
  for (const int member : members)
    if (topology_.node_of(member) == topology_.node_of(rank()))
      neighbours.push_back(topology_.local_rank(member));
  auto part = std::make_shared<MpiCommunicator>(MpiComm::adopt(comm), topology_.of(members), allreduce_,
                                                chunk_bytes_, view_ ? view_.of(neighbours) : NodeView());
  part->tune(costs_, f32_wire_);
  return part;
}

}  // namespace kolo::detail
