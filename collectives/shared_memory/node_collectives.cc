#include <kolo/collectives/shared_memory/node_collectives.h>

#include <kolo/collectives/shared_memory/gathering.h>
#include <kolo/collectives/shared_memory/reduction.h>

namespace kolo {

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
