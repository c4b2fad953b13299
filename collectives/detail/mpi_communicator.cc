#include <kolo/collectives/detail/mpi_communicator.h>

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include <kolo/collectives/algorithms/allreduce_registry.h>
#include <kolo/collectives/algorithms/exchange.h>
#include <kolo/collectives/detail/mpi_allreduce.h>
#include <kolo/core/base/error.h>

namespace kolo::detail {
namespace {

// MPI 3 counts in int.
constexpr std::size_t kPieceBytes = std::size_t{1} << 30;

/// Nonblocking MPI calls that are over when all of them are.
class MpiRequests final : public Collective {
 public:
  explicit MpiRequests(std::function<void(std::vector<MPI_Request>&)> post) : post_(std::move(post)) {}

  void start() override {
    requests_.clear();
    post_(requests_);
  }
  Progress progress() override {
    int done = 0;
    check_mpi(MPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &done, MPI_STATUSES_IGNORE),
              "MPI_Testall");
    return done != 0 ? Progress::finished : Progress::none;
  }

 private:
  std::function<void(std::vector<MPI_Request>&)> post_;
  std::vector<MPI_Request> requests_;
};

void post_broadcast(std::span<std::byte> bytes, int root, MPI_Comm comm, std::vector<MPI_Request>& requests) {
  while (!bytes.empty()) {
    const auto piece = bytes.first(std::min(bytes.size(), kPieceBytes));
    bytes = bytes.subspan(piece.size());
    check_mpi(MPI_Ibcast(piece.data(), static_cast<int>(piece.size()), MPI_BYTE, root, comm,
                         &requests.emplace_back(MPI_REQUEST_NULL)),
              "MPI_Ibcast");
  }
}

}  // namespace

MpiCommunicator::MpiCommunicator(MpiComm comm, Topology topology, std::string allreduce,
                                 std::int64_t chunk_bytes)
    : comm_(std::move(comm)),
      topology_(std::move(topology)),
      network_(comm_.get()),
      allreduce_(std::move(allreduce)),
      chunk_bytes_(chunk_bytes) {}

std::shared_ptr<Collective> MpiCommunicator::make_allreduce(const TypedBuffer& buffer, ReduceOp op) {
  if (op == ReduceOp::adasum) throw UnimplementedError("adasum over MPI");
  const std::string name = allreduce_ == "auto" ? "ring" : allreduce_;
  if (name == "mpi") return mpi_allreduce(comm_.get(), buffer, op);
  const AllreduceFactory make = allreduce_factory(name);
  if (make == nullptr) throw InternalError("there is no allreduce algorithm \"{}\"", name);
  return make({.network = network_, .topology = topology_, .chunk_bytes = chunk_bytes_}, buffer, op);
}

// The whole array is reduced, of which only a block is asked for.
std::shared_ptr<Collective> MpiCommunicator::make_reduce_scatter(const TypedBuffer& buffer,
                                                                 std::span<const std::int64_t>, ReduceOp op) {
  return make_allreduce(buffer, op);
}

void MpiCommunicator::check_root(int root) const {
  if (root < 0 || root >= size())
    throw InvalidArgumentError("root rank {} is outside the process set of {} ranks", root, size());
}

std::shared_ptr<Collective> MpiCommunicator::broadcast(std::span<std::byte> bytes, int root) {
  check_root(root);
  return std::make_shared<MpiRequests>([bytes, root, comm = comm_.get()](std::vector<MPI_Request>& requests) {
    post_broadcast(bytes, root, comm, requests);
  });
}

// A broadcast from each rank rather than MPI_Iallgatherv, whose displacements end at 2 GiB.
std::shared_ptr<Collective> MpiCommunicator::allgather(std::span<const std::span<std::byte>> blocks) {
  if (static_cast<int>(blocks.size()) != size())
    throw InvalidArgumentError("allgather over {} ranks was given {} blocks; it needs one for each rank",
                               size(), blocks.size());
  return std::make_shared<MpiRequests>(
      [blocks = std::vector<std::span<std::byte>>(blocks.begin(), blocks.end()),
       comm = comm_.get()](std::vector<MPI_Request>& requests) {
        for (std::size_t root = 0; root < blocks.size(); ++root)
          post_broadcast(blocks[root], static_cast<int>(root), comm, requests);
      });
}

std::shared_ptr<Collective> MpiCommunicator::alltoall(std::span<const std::span<const std::byte>> out,
                                                      std::span<const std::span<std::byte>> in) {
  return exchange(network_, out, in);
}

std::shared_ptr<Collective> MpiCommunicator::gather(std::span<const std::byte> own,
                                                    std::span<const std::span<std::byte>> blocks, int root) {
  check_root(root);
  std::vector<std::span<const std::byte>> out(size());
  out[root] = own;
  return exchange(network_, out, blocks);
}

std::shared_ptr<Collective> MpiCommunicator::scatter(std::span<const std::span<const std::byte>> blocks,
                                                     std::span<std::byte> own, int root) {
  check_root(root);
  std::vector<std::span<std::byte>> in(size());
  in[root] = own;
  return exchange(network_, blocks, in);
}

std::shared_ptr<Collective> MpiCommunicator::barrier() {
  return std::make_shared<MpiRequests>([comm = comm_.get()](std::vector<MPI_Request>& requests) {
    check_mpi(MPI_Ibarrier(comm, &requests.emplace_back(MPI_REQUEST_NULL)), "MPI_Ibarrier");
  });
}

std::shared_ptr<Communicator> MpiCommunicator::duplicate() {
  return std::make_shared<MpiCommunicator>(MpiComm::duplicate(comm_.get()), topology_, allreduce_,
                                           chunk_bytes_);
}

std::shared_ptr<Communicator> MpiCommunicator::subset(std::span<const int> members, int tag) {
  MPI_Group all = MPI_GROUP_NULL, chosen = MPI_GROUP_NULL;
  MPI_Comm comm = MPI_COMM_NULL;
  check_mpi(MPI_Comm_group(comm_.get(), &all), "MPI_Comm_group");
  check_mpi(MPI_Group_incl(all, static_cast<int>(members.size()), members.data(), &chosen), "MPI_Group_incl");
  check_mpi(MPI_Comm_create_group(comm_.get(), chosen, tag, &comm), "MPI_Comm_create_group");
  MPI_Group_free(&chosen);
  MPI_Group_free(&all);
  return std::make_shared<MpiCommunicator>(MpiComm::adopt(comm), topology_.of(members), allreduce_,
                                           chunk_bytes_);
}

}  // namespace kolo::detail
