#include <kolo/collectives/engine/execution.h>

#include <cstring>
#include <numeric>
#include <span>
#include <utility>

#include <kolo/collectives/algorithms/stages.h>
#include <kolo/collectives/engine/row_exchange.h>

namespace kolo::detail {
namespace {

// The whole tensor is reduced where a copy of it lies; the own rows are cut out at the end.
std::shared_ptr<Collective> reduce_scatter(Communicator& communicator, const Agreed& agreed) {
  std::vector<Stage> stages;
  const OperationPtr& operation = agreed.operation;
  for (std::size_t t = 0; t < operation->buffers.size(); ++t) {
    const Shape& shape = agreed.request->tensors[t].shape;
    const auto rows = rows_by_rank(shape.dim(0), communicator.size());
    if (shape.elements() > 0)
      stages.emplace_back([&communicator, operation, t, rows, reduction = agreed.request->reduction] {
        const TypedBuffer& buffer = operation->buffers[t];
        const auto row = buffer.elements / std::accumulate(rows.begin(), rows.end(), std::int64_t{0});
        auto counts = rows;
        for (auto& count : counts) count *= row;
        return communicator.reduce_scatter(buffer, counts, reduction);
      });
    stages.emplace_back([operation, t, rows, rank = communicator.rank()]() -> std::shared_ptr<Collective> {
      const auto first = std::accumulate(rows.begin(), rows.begin() + rank, std::int64_t{0});
      operation->results[t].copy_from(operation->tensors[t].rows(first, first + rows[rank]));
      return nullptr;
    });
  }
  return in_stages(std::move(stages));
}

std::span<std::byte> bytes_of(const TypedBuffer& buffer) {
  return {buffer.bytes, static_cast<std::size_t>(buffer.elements) * size_of(buffer.dtype)};
}

// Members of a group's broadcast up to so many bytes travel in one message.
constexpr std::size_t kTogetherBytes = std::size_t{256} << 10;

// Runs of short members go through memory of the engine's, others from where they lie.
std::shared_ptr<Collective> broadcast_run(Communicator& communicator, const OperationPtr& operation,
                                          std::size_t first, std::size_t end, int root) {
  if (end - first == 1) return communicator.broadcast(bytes_of(operation->buffers[first]), root);
  std::size_t bytes = 0;
  for (std::size_t t = first; t < end; ++t) bytes += bytes_of(operation->buffers[t]).size();
  const auto run = std::make_shared<std::vector<std::byte>>(bytes);
  const bool is_root = communicator.rank() == root;
  const auto copy = [operation, run, first, end, is_root]() -> std::shared_ptr<Collective> {
    std::byte* place = run->data();
    for (std::size_t t = first; t < end; ++t) {
      const auto member = bytes_of(operation->buffers[t]);
      if (!member.empty())
        std::memcpy(is_root ? place : member.data(), is_root ? member.data() : place, member.size());
      place += member.size();
    }
    return nullptr;
  };
  const Stage send = [&communicator, run, root] { return communicator.broadcast(*run, root); };
  return is_root ? in_stages({copy, send}) : in_stages({send, copy});
}

std::shared_ptr<Collective> grouped_broadcast(Communicator& communicator, const OperationPtr& operation,
                                              int root) {
  std::vector<Stage> stages;
  const auto& members = operation->buffers;
  for (std::size_t first = 0; first < members.size();) {
    std::size_t end = first, bytes = 0;
    do bytes += bytes_of(members[end++]).size();
    while (end < members.size() && bytes + bytes_of(members[end]).size() <= kTogetherBytes);
    stages.emplace_back([&communicator, operation, first, end, root] {
      return broadcast_run(communicator, operation, first, end, root);
    });
    first = end;
  }
  return in_stages(std::move(stages));
}

}  // namespace

std::shared_ptr<Collective> execute(Communicator& communicator, const std::vector<int>& members,
                                    const Agreed& agreed, int root, Work& work) {
  switch (agreed.request->kind) {
    case OpKind::reduce_scatter:
    case OpKind::grouped_reduce_scatter: return reduce_scatter(communicator, agreed);
    case OpKind::broadcast: return communicator.broadcast(bytes_of(agreed.operation->buffers[0]), root);
    case OpKind::grouped_broadcast: return grouped_broadcast(communicator, agreed.operation, root);
    case OpKind::barrier: return communicator.barrier();
    default: return exchange_rows(communicator, members, agreed, root, work);
  }
}

}  // namespace kolo::detail
