#include <kolo/collectives/algorithms/shared_collectives.h>

#include <kolo/collectives/algorithms/shared_gathering.h>
#include <kolo/collectives/algorithms/shared_reduction.h>

namespace kolo {
namespace {

class Carried final : public Collective {
 public:
  Carried(std::shared_ptr<Collective> operation, const SharedMemoryPointToPoint& network)
      : operation_(std::move(operation)), network_(network) {}
  void start() override { operation_->start(); }
  Progress progress() override {
    const Progress progress = operation_->progress();
    const bool moved = std::exchange(moved_, network_.moved_bytes()) != network_.moved_bytes();
    return progress == Progress::none && moved ? Progress::advanced : progress;
  }
  const char* phase() const override { return operation_->phase(); }
  bool needs_comm_thread() const override { return false; }

 private:
  const std::shared_ptr<Collective> operation_;
  const SharedMemoryPointToPoint& network_;
  std::uint64_t moved_ = 0;
};

}  // namespace

std::shared_ptr<Collective> NodeCollectives::carried(std::shared_ptr<Collective> operation) {
  return std::make_shared<Carried>(std::move(operation), network_);
}

std::shared_ptr<Collective> NodeCollectives::allreduce(const TypedBuffer& buffer, ReduceOp op) {
  return shared_memory_allreduce(*channel_, buffer, op, size());
}

std::shared_ptr<Collective> NodeCollectives::reduce_scatter(const TypedBuffer& buffer,
                                                            std::span<const std::int64_t> counts,
                                                            ReduceOp op) {
  return shared_memory_reduce_scatter(*channel_, buffer, counts, op, size());
}

std::shared_ptr<Collective> NodeCollectives::allgather(std::span<const std::span<std::byte>> blocks) {
  return shared_memory_allgather(*channel_, blocks);
}

std::shared_ptr<Collective> NodeCollectives::broadcast(std::span<std::byte> bytes, int root) {
  return shared_memory_broadcast(*channel_, bytes, root);
}

std::shared_ptr<Collective> NodeCollectives::barrier() { return shared_memory_barrier(*channel_); }

}  // namespace kolo
