#include <kolo/collectives/algorithms/mpi_communicator.h>

#include <algorithm>
#include <utility>
#include <vector>

#include <kolo/collectives/algorithms/adasum.h>
#include <kolo/collectives/algorithms/allreduce_registry.h>
#include <kolo/collectives/algorithms/cost_model.h>
#include <kolo/collectives/algorithms/message_collectives.h>
#include <kolo/collectives/algorithms/ring.h>
#include <kolo/collectives/algorithms/stages.h>
#include <kolo/collectives/reduce/reduce.h>
#include <kolo/core/base/error.h>
#include <kolo/core/base/log.h>

namespace kolo::detail {
namespace {

// MPI hands a reduction function no context, so there is one for each op and type.
template <ReduceOp kOp, DType kType>
void reduce_for_mpi(void* in, void* in_out, int* count, MPI_Datatype*) {
  reduce(kOp, kType, in_out, in, *count);
}

template <ReduceOp kOp>
MPI_User_function* function_for(DType dtype) {
  switch (dtype) {
    case DType::f32: return reduce_for_mpi<kOp, DType::f32>;
    case DType::f64: return reduce_for_mpi<kOp, DType::f64>;
    case DType::i32: return reduce_for_mpi<kOp, DType::i32>;
    case DType::i64: return reduce_for_mpi<kOp, DType::i64>;
    case DType::boolean: return reduce_for_mpi<kOp, DType::boolean>;
    case DType::u8: return reduce_for_mpi<kOp, DType::u8>;
    case DType::i8: return reduce_for_mpi<kOp, DType::i8>;
    case DType::f16: return reduce_for_mpi<kOp, DType::f16>;
    case DType::bf16: return reduce_for_mpi<kOp, DType::bf16>;
    case DType::string: break;
  }
  return nullptr;
}

MPI_User_function* function_for(ReduceOp op, DType dtype) {
  switch (op) {
    case ReduceOp::sum:
    case ReduceOp::average: return function_for<ReduceOp::sum>(dtype);
    case ReduceOp::min: return function_for<ReduceOp::min>(dtype);
    case ReduceOp::max: return function_for<ReduceOp::max>(dtype);
    case ReduceOp::product: return function_for<ReduceOp::product>(dtype);
    case ReduceOp::adasum: break;
  }
  return nullptr;
}

class MpiOp {
 public:
  explicit MpiOp(MPI_User_function* function) {
    check_mpi(MPI_Op_create(function, /*commute=*/1, &op_), "MPI_Op_create");
  }
  MpiOp(const MpiOp&) = delete;
  MpiOp& operator=(const MpiOp&) = delete;
  ~MpiOp() {
    if (mpi_is_running()) MPI_Op_free(&op_);
  }
  MPI_Op get() const { return op_; }

 private:
  MPI_Op op_ = MPI_OP_NULL;
};

MPI_Datatype word_of(std::size_t bytes) {
  switch (bytes) {
    case 1: return MPI_UINT8_T;
    case 2: return MPI_UINT16_T;
    case 4: return MPI_UINT32_T;
    default: return MPI_UINT64_T;
  }
}

class MpiAllreduce final : public Collective {
 public:
  MpiAllreduce(MPI_Comm comm, const TypedBuffer& buffer, ReduceOp op, int divisor)
      : comm_(comm),
        buffer_(buffer),
        divisor_(op == ReduceOp::average ? divisor : 1),
        function_(function_for(op, buffer.dtype)) {}

  void start() override {
    if (!mpi_op_) mpi_op_ = std::make_unique<MpiOp>(function_);
    all_are_here_ = false;
    requests_.assign(1, MPI_REQUEST_NULL);
    check_mpi(MPI_Ibarrier(comm_, &requests_[0]), "MPI_Ibarrier");
  }

  Progress progress() override {
    int done = 0;
    check_mpi(MPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &done, MPI_STATUSES_IGNORE),
              "MPI_Testall");
    if (done == 0) return all_are_here_ ? Progress::advanced : Progress::none;
    if (!all_are_here_) {
      all_are_here_ = true;
      post();
      return Progress::advanced;
    }
    if (divisor_ != 1) divide(buffer_.dtype, buffer_.bytes, buffer_.elements, divisor_);
    return Progress::finished;
  }

 private:
  static constexpr std::int64_t kPieceElements = std::int64_t{1} << 27;

  void post() {
    const std::size_t bytes = size_of(buffer_.dtype);
    requests_.clear();
    for (std::int64_t first = 0; first < buffer_.elements; first += kPieceElements) {
      const auto count = static_cast<int>(std::min(kPieceElements, buffer_.elements - first));
      check_mpi(MPI_Iallreduce(MPI_IN_PLACE, buffer_.bytes + first * bytes, count, word_of(bytes),
                               mpi_op_->get(), comm_, &requests_.emplace_back(MPI_REQUEST_NULL)),
                "MPI_Iallreduce");
    }
  }

  MPI_Comm comm_;
  TypedBuffer buffer_;
  int divisor_;
  MPI_User_function* function_;
  bool all_are_here_ = false;
  std::unique_ptr<MpiOp> mpi_op_;
  std::vector<MPI_Request> requests_;
};

}  // namespace

std::shared_ptr<Collective> mpi_allreduce(MPI_Comm comm, const TypedBuffer& buffer, ReduceOp op,
                                          int divisor) {
  return std::make_shared<MpiAllreduce>(comm, buffer, op, divisor);
}

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

std::shared_ptr<Collective> MpiCommunicator::make_allreduce(const TypedBuffer& buffer, ReduceOp op,
                                                            int average_over) {
  const std::int64_t bytes = buffer.elements * static_cast<std::int64_t>(size_of(buffer.dtype));
  const std::string name =
      allreduce_ != "auto"
          ? allreduce_
          : choose_allreduce(
                {.topology = topology_, .shares_memory = shared() != nullptr, .bytes = bytes, .op = op},
                costs_);
  if (name == "mpi") {
    // MPI does not tell whose sums it adds, so that they cannot be kept within f16's range.
    const bool may_overflow = op == ReduceOp::average && buffer.dtype == DType::f16;
    return widened_where(f32_wire_ || may_overflow, buffer, [&](const TypedBuffer& sent) {
      return mpi_allreduce(comm_.get(), sent, op, average_over);
    });
  }
  if (name == "shared_memory") {
    if (shared() != nullptr) return shared()->allreduce(buffer, op, average_over);
    throw FailedPreconditionError("KOLO_ALLREDUCE=shared_memory: {} ranks on {} nodes do not share memory{}",
                                  size(), topology_.nodes(),
                                  topology_.nodes() > 1 ? "" : ", see the warning at the start");
  }
  return carried(kolo::make_allreduce(name, context(average_over), buffer, op));
}

// Across nodes only if that was asked for: the result must not depend on where ranks run.
std::shared_ptr<Collective> MpiCommunicator::make_adasum(const TypedBuffer& buffer,
                                                         std::span<const std::int64_t> tensor_elements,
                                                         const Contributors& contributors) {
  const bool all_contribute = contributors.count == 0 || contributors.count == size();
  return carried(widened_where(f32_wire_, buffer, [&](const TypedBuffer& sent) {
    if (allreduce_ != "hierarchical") return adasum_allreduce(context(), sent, tensor_elements);
    return all_contribute ? hierarchical_adasum(context(), sent, tensor_elements)
                          : hierarchical_adasum(context(), sent, tensor_elements, contributors.own);
  }));
}

// Another algorithm that was asked for reduces the whole array, of which a block is kept: in its own order.
std::shared_ptr<Collective> MpiCommunicator::make_reduce_scatter(const TypedBuffer& buffer,
                                                                 std::span<const std::int64_t> counts,
                                                                 ReduceOp op) {
  if (shared() != nullptr && (allreduce_ == "auto" || allreduce_ == "shared_memory"))
    return shared()->reduce_scatter(buffer, counts, op, size());
  if (allreduce_ != "auto" && allreduce_ != "ring") return make_allreduce(buffer, op, size());
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
