#include <kolo/collectives/engine/work.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>
#include <span>
#include <utility>

#include <kolo/collectives/algorithms/stages.h>
#include <kolo/collectives/reduce/reduce.h>
#include <kolo/core/base/error.h>

namespace kolo::detail {
namespace {

template <typename T>
void fill(const TypedBuffer& buffer, T value) {
  std::fill_n(reinterpret_cast<T*>(buffer.bytes), buffer.elements, value);
}

template <typename T>
T neutral(ReduceOp op) {
  using Limits = std::numeric_limits<T>;
  switch (op) {
    case ReduceOp::min: return Limits::has_infinity ? Limits::infinity() : Limits::max();
    case ReduceOp::max: return Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
    case ReduceOp::product: return T{1};
    default: return T{0};
  }
}

void scale_alone(const Request& request, const TypedBuffer& buffer) {
  for (const double scale : {request.reduction.prescale, request.reduction.postscale})
    if (scale != 1) multiply(buffer.dtype, buffer.bytes, buffer.elements, scale);
}

Tensor copy_of(const TypedBuffer& buffer, const Shape& shape, Allocator& allocator) {
  Tensor copy(buffer.dtype, shape, allocator);
  if (copy.bytes() > 0) std::memcpy(copy.raw(), buffer.bytes, copy.bytes());
  return copy;
}

}  // namespace

std::vector<std::int64_t> rows_by_rank(std::int64_t rows, int ranks) {
  std::vector<std::int64_t> counts(ranks, rows / ranks);
  for (int rank = 0; rank < rows % ranks; ++rank) ++counts[rank];
  return counts;
}

void fill_neutral(ReduceOp op, const TypedBuffer& buffer) {
  switch (buffer.dtype) {
    case DType::f32: return fill(buffer, neutral<float>(op));
    case DType::f64: return fill(buffer, neutral<double>(op));
    case DType::f16: return fill(buffer, Half(neutral<float>(op)));
    case DType::bf16: return fill(buffer, BFloat16(neutral<float>(op)));
    case DType::i32: return fill(buffer, neutral<std::int32_t>(op));
    case DType::i64: return fill(buffer, neutral<std::int64_t>(op));
    case DType::u8: return fill(buffer, neutral<std::uint8_t>(op));
    case DType::i8: return fill(buffer, neutral<std::int8_t>(op));
    case DType::boolean: return fill(buffer, op == ReduceOp::min || op == ReduceOp::product);
    case DType::string: break;
  }
  throw InternalError("{} has no neutral element", numpy_name(buffer.dtype));
}

void run_alone(Operation& operation) {
  const Request& request = *operation.request;
  switch (request.kind) {
    case OpKind::allreduce:
    case OpKind::grouped_allreduce:
      for (const auto& buffer : operation.buffers) scale_alone(request, buffer);
      break;
    case OpKind::reduce_scatter:
    case OpKind::grouped_reduce_scatter:
      for (const auto& buffer : operation.buffers) scale_alone(request, buffer);
      operation.results = std::move(operation.tensors);
      break;
    case OpKind::allgather:
    case OpKind::alltoall:
    case OpKind::gather:
    case OpKind::scatter:
    case OpKind::broadcast_object:
    case OpKind::allgather_object:
      operation.results = {copy_of(operation.buffers[0], request.tensors[0].shape, *operation.allocator)};
      operation.numbers = {request.rows()};
      break;
    default: break;
  }
}

// The operations whose results have another place or size than what goes in.

namespace {

// Below it a rank that has no memory is beyond help anyway: the ranks do not ask each other.
constexpr std::int64_t kAskAboveBytes = std::int64_t{1} << 20;

std::span<std::byte> bytes_of(std::int64_t& number) {
  return {reinterpret_cast<std::byte*>(&number), sizeof number};
}

/// What the stages of one execution share.
struct Run : std::enable_shared_from_this<Run> {
  Run(Communicator& communicator, Agreed agreed, int root, Work& work)
      : communicator(communicator), agreed(std::move(agreed)), root(root), work(work) {}

  int ranks() const { return communicator.size(); }
  int rank() const { return communicator.rank(); }
  const TensorSpec& tensor() const { return agreed.request->tensors[0]; }
  std::int64_t row_bytes() const {
    auto bytes = static_cast<std::int64_t>(size_of(tensor().dtype));
    for (int axis = 1; axis < tensor().shape.rank(); ++axis) bytes *= tensor().shape.dim(axis);
    return bytes;
  }
  std::int64_t all_rows() const {
    return std::accumulate(agreed.rows.begin(), agreed.rows.end(), std::int64_t{0});
  }
  std::byte* input() const { return agreed.operation ? agreed.operation->buffers[0].bytes : nullptr; }

  // Blocks of rows one behind the other.
  std::vector<std::span<std::byte>> blocks(std::byte* first, std::span<const std::int64_t> rows) const {
    std::vector<std::span<std::byte>> all;
    for (const auto count : rows) {
      all.emplace_back(first, static_cast<std::size_t>(count * row_bytes()));
      first += count * row_bytes();
    }
    return all;
  }

  void allocate(std::int64_t rows) {
    Allocator& allocator = agreed.operation ? *agreed.operation->allocator : cpu_allocator();
    const Shape shape = tensor().shape.with_dim(0, rows);
    missing.assign(ranks(), 0);
    try {
      result = Tensor(tensor().dtype, shape, allocator);
    } catch (const ResourceExhaustedError&) {
      missing[rank()] = rows * row_bytes();
    }
  }
  /// The ranks tell each other whether they have memory for their results. bytes: in all, the same on all.
  std::shared_ptr<Collective> agree_on_memory(std::int64_t bytes) {
    if (bytes <= kAskAboveBytes) return nullptr;
    std::vector<std::span<std::byte>> all;
    for (auto& one : missing) all.push_back(bytes_of(one));
    return communicator.allgather(all);
  }
  bool has_memory() {
    for (int r = 0; r < ranks(); ++r)
      if (missing[r] > 0) {
        work.error = std::make_exception_ptr(
            ResourceExhaustedError("{} {}: rank {} cannot allocate {} bytes for the result",
                                   name(agreed.request->kind), agreed.request->name, r, missing[r]));
        return false;
      }
    return true;
  }
  void deliver() {
    if (!agreed.operation) return;
    agreed.operation->results = {result};
    agreed.operation->numbers = agreed.rows;
  }

  Communicator& communicator;
  const Agreed agreed;
  const int root;
  Work& work;
  Tensor result;
  std::vector<std::int64_t> missing;  // by rank: bytes that could not be allocated
  std::vector<std::int64_t> sent, received;
};
using RunPtr = std::shared_ptr<Run>;

std::shared_ptr<Collective> allgather(const RunPtr& run) {
  return in_stages({[run] {
                      run->allocate(run->all_rows());
                      return run->agree_on_memory(run->all_rows() * run->row_bytes());
                    },
                    [run]() -> std::shared_ptr<Collective> {
                      if (!run->has_memory()) return nullptr;
                      const auto blocks = run->blocks(run->result.raw(), run->agreed.rows);
                      const auto own = blocks[run->rank()];
                      if (!own.empty()) std::memcpy(own.data(), run->input(), own.size());
                      run->deliver();
                      return run->communicator.allgather(blocks);
                    }});
}

std::shared_ptr<Collective> gather(const RunPtr& run) {
  return in_stages(
      {[run] {
         run->allocate(run->rank() == run->root ? run->all_rows() : 0);
         return run->agree_on_memory(run->all_rows() * run->row_bytes());
       },
       [run]() -> std::shared_ptr<Collective> {
         if (!run->has_memory()) return nullptr;
         std::vector<std::span<std::byte>> blocks;
         if (run->rank() == run->root) blocks = run->blocks(run->result.raw(), run->agreed.rows);
         run->deliver();
         const auto bytes = run->agreed.rows[run->rank()] * run->row_bytes();
         return run->communicator.gather({run->input(), static_cast<std::size_t>(bytes)}, blocks, run->root);
       }});
}

std::shared_ptr<Collective> scatter(const RunPtr& run) {
  return in_stages({[run]() -> std::shared_ptr<Collective> {
    const auto rows = run->tensor().shape.dim(0) / run->ranks();
    run->allocate(rows);
    if (run->missing[run->rank()] > 0)
      throw ResourceExhaustedError("scatter {}: {} bytes", run->agreed.request->name,
                                   run->missing[run->rank()]);
    std::vector<std::span<const std::byte>> blocks;
    if (run->rank() == run->root)
      for (const auto block : run->blocks(run->input(), std::vector<std::int64_t>(run->ranks(), rows)))
        blocks.emplace_back(block);
    run->deliver();
    return run->communicator.scatter(blocks, {run->result.raw(), run->result.bytes()}, run->root);
  }});
}

std::shared_ptr<Collective> alltoall(const RunPtr& run) {
  run->sent = run->agreed.operation->splits;
  run->received.assign(run->ranks(), 0);
  return in_stages({[run] {
                      std::vector<std::span<const std::byte>> out;
                      std::vector<std::span<std::byte>> in;
                      for (int r = 0; r < run->ranks(); ++r) {
                        out.emplace_back(bytes_of(run->sent[r]));
                        in.push_back(bytes_of(run->received[r]));
                      }
                      return run->communicator.alltoall(out, in);
                    },
                    [run] {
                      run->allocate(
                          std::accumulate(run->received.begin(), run->received.end(), std::int64_t{0}));
                      return run->agree_on_memory(run->all_rows() * run->row_bytes());
                    },
                    [run]() -> std::shared_ptr<Collective> {
                      if (!run->has_memory()) return nullptr;
                      std::vector<std::span<const std::byte>> out;
                      for (const auto block : run->blocks(run->input(), run->sent)) out.emplace_back(block);
                      run->deliver();
                      run->agreed.operation->numbers = run->received;
                      return run->communicator.alltoall(out, run->blocks(run->result.raw(), run->received));
                    }});
}

// The whole tensor is reduced where a copy of it lies; the own rows are cut out at the end.
std::shared_ptr<Collective> reduce_scatter(const RunPtr& run) {
  std::vector<Stage> stages;
  const Operation& operation = *run->agreed.operation;
  for (std::size_t t = 0; t < operation.buffers.size(); ++t) {
    const Shape& shape = run->agreed.request->tensors[t].shape;
    const auto rows = rows_by_rank(shape.dim(0), run->ranks());
    if (shape.elements() > 0)
      stages.emplace_back([run, t, rows] {
        const TypedBuffer& buffer = run->agreed.operation->buffers[t];
        const auto row = buffer.elements / std::accumulate(rows.begin(), rows.end(), std::int64_t{0});
        auto counts = rows;
        for (auto& count : counts) count *= row;
        return run->communicator.reduce_scatter(buffer, counts, run->agreed.request->reduction);
      });
    stages.emplace_back([run, t, rows]() -> std::shared_ptr<Collective> {
      auto& operation = *run->agreed.operation;
      const auto first = std::accumulate(rows.begin(), rows.begin() + run->rank(), std::int64_t{0});
      const Tensor own = operation.tensors[t].rows(first, first + rows[run->rank()]);
      operation.results.push_back(own.clone());
      return nullptr;
    });
  }
  return in_stages(std::move(stages));
}

}  // namespace

std::shared_ptr<Collective> execute(Communicator& communicator, const Agreed& agreed, int root, Work& work) {
  const auto run = std::make_shared<Run>(communicator, agreed, root, work);
  switch (agreed.request->kind) {
    case OpKind::allgather:
    case OpKind::broadcast_object:  // all rows are the root's
    case OpKind::allgather_object: return allgather(run);
    case OpKind::gather: return gather(run);
    case OpKind::scatter: return scatter(run);
    case OpKind::alltoall: return alltoall(run);
    case OpKind::reduce_scatter:
    case OpKind::grouped_reduce_scatter: return reduce_scatter(run);
    case OpKind::broadcast: {
      const TypedBuffer& buffer = agreed.operation->buffers[0];
      const auto bytes = static_cast<std::size_t>(buffer.elements) * size_of(buffer.dtype);
      return communicator.broadcast({buffer.bytes, bytes}, root);
    }
    case OpKind::barrier: return communicator.barrier();
    default: break;
  }
  throw InternalError("{} is no operation of its own", name(agreed.request->kind));
}

}  // namespace kolo::detail
