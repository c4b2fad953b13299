#include <kolo/collectives/engine/execution.h>

#include <numeric>
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

}  // namespace

std::shared_ptr<Collective> execute(Communicator& communicator, const std::vector<int>& members,
                                    const Agreed& agreed, int root, Work& work) {
  switch (agreed.request->kind) {
    case OpKind::reduce_scatter:
    case OpKind::grouped_reduce_scatter: return reduce_scatter(communicator, agreed);
    case OpKind::broadcast: {
      const TypedBuffer& buffer = agreed.operation->buffers[0];
      const auto bytes = static_cast<std::size_t>(buffer.elements) * size_of(buffer.dtype);
      return communicator.broadcast({buffer.bytes, bytes}, root);
    }
    case OpKind::barrier: return communicator.barrier();
    default: return exchange_rows(communicator, members, agreed, root, work);
  }
}

}  // namespace kolo::detail
