#include <kolo/collectives/engine/eager.h>

#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include <kolo/collectives/engine/call.h>

namespace kolo {
namespace {

using detail::name;
using detail::Operation;
using detail::OperationPtr;
using detail::OpKind;
using detail::Request;
using detail::SetEngine;
using detail::start;

detail::CallOptions call_options(const EagerOptions& options) {
  return {.name = options.name,
          .process_set = options.process_set.id(),
          .average_over_all = options.join_average == JoinAverage::all,
          .allocator = options.allocator};
}

Shape flat(const TypedBuffer& buffer) { return Shape{buffer.elements}; }

TypedBuffer buffer_of(const Tensor& tensor) { return {tensor.raw(), tensor.elements(), tensor.dtype()}; }

// What goes over the wire as it lies in memory.
void check_plain(OpKind kind, DType dtype) {
  if (dtype == DType::string)
    throw InvalidArgumentError(
        "{} is not defined for string; allgather_object and broadcast_object take texts", name(kind));
}

void add(Operation& operation, Request& request, const TypedBuffer& buffer, const Shape& shape) {
  operation.buffers.push_back(buffer);
  request.tensors.push_back({buffer.dtype, shape});
}

// Rows that the engine reads where they lie: the caller's memory, or a tensor, which the operation then
// keeps.
struct Rows {
  explicit Rows(const Tensor& tensor) : buffer(buffer_of(tensor)), shape(tensor.shape()), owner({tensor}) {}
  explicit Rows(const TypedBuffer& elements) : buffer(elements), shape(flat(elements)) {}

  TypedBuffer buffer;
  Shape shape;
  std::vector<Tensor> owner;
};

void add_read_only(Operation& operation, Request& request, const Rows& rows) {
  operation.writes = false;
  operation.tensors = rows.owner;
  add(operation, request, rows.buffer, rows.shape);
}

// A copy that the engine may write to.
Tensor add_copy(Operation& operation, Request& request, const TypedBuffer& buffer, const Shape& shape,
                Allocator& allocator) {
  Tensor copy(buffer.dtype, shape, allocator);
  if (copy.bytes() > 0) std::memcpy(copy.raw(), buffer.bytes, copy.bytes());
  add(operation, request, buffer_of(copy), shape);
  operation.tensors.push_back(copy);
  return copy;
}

void add_reduction(Request& request, const Reduction& reduction) {
  check_scales(reduction);  // of no tensors, too
  for (const auto& tensor : request.tensors) check_reducible(reduction, tensor.dtype);
  request.reduction = reduction;
}

void check_rows(OpKind kind, const Shape& shape) {
  if (shape.rank() == 0)
    throw InvalidArgumentError("{} needs at least one dimension; this is a scalar", name(kind));
}

void check_root(int root, const SetEngine& set) {
  const auto& members = set.members();
  if (std::find(members.begin(), members.end(), root) == members.end())
    throw InvalidArgumentError("root rank {} is outside the process set of {} ranks", root, set.size());
}

OperationPtr start_rows_of(OpKind kind, const Rows& own, int root, const EagerOptions& options) {
  return start(kind, call_options(options),
               [&](Operation& operation, Request& request, const SetEngine& set) {
                 check_plain(kind, own.buffer.dtype);
                 check_rows(kind, own.shape);
                 if (root >= 0 || kind == OpKind::gather) check_root(root, set);
                 request.root = root;
                 add_read_only(operation, request, own);
               });
}

// Not by their sum, which may wrap.
bool add_up_to(std::int64_t rows, std::span<const std::int64_t> splits) {
  for (const auto split : splits) {
    if (split < 0 || split > rows) return false;
    rows -= split;
  }
  return rows == 0;
}

OperationPtr start_alltoall_of(const Rows& own, std::span<const std::int64_t> splits,
                               const EagerOptions& options) {
  return start(
      OpKind::alltoall, call_options(options),
      [&](Operation& operation, Request& request, const SetEngine& set) {
        check_plain(OpKind::alltoall, own.buffer.dtype);
        check_rows(OpKind::alltoall, own.shape);
        const std::int64_t rows = own.shape.dim(0), ranks = set.size();
        if (splits.empty()) {
          if (rows % ranks != 0)
            throw InvalidArgumentError("alltoall: {} rows do not divide by {}; give splits", rows, ranks);
          operation.splits.assign(ranks, rows / ranks);
        } else {
          operation.splits.assign(splits.begin(), splits.end());
          const bool fit = static_cast<std::int64_t>(splits.size()) == ranks && add_up_to(rows, splits);
          if (!fit)
            throw InvalidArgumentError(
                "splits must have {} non-negative entries that sum to {}; they are [{}]", ranks, rows,
                fmt::join(splits, ","));
        }
        add_read_only(operation, request, own);
      });
}

OperationPtr start_scatter_of(const Rows& all, int root, const EagerOptions& options) {
  return start(OpKind::scatter, call_options(options),
               [&](Operation& operation, Request& request, const SetEngine& set) {
                 check_root(root, set);
                 request.root = root;
                 operation.writes = false;
                 if (set.members()[set.rank()] != root) return;
                 check_plain(OpKind::scatter, all.buffer.dtype);
                 check_rows(OpKind::scatter, all.shape);
                 if (all.shape.dim(0) % set.size() != 0)
                   throw InvalidArgumentError("scatter: {} rows do not divide by {}", all.shape.dim(0),
                                              set.size());
                 add_read_only(operation, request, all);
               });
}

OperationPtr start_bytes(OpKind kind, std::string_view bytes, int root, const EagerOptions& options) {
  return start(kind, call_options(options),
               [&](Operation& operation, Request& request, const SetEngine& set) {
                 if (kind == OpKind::broadcast_object) {
                   check_root(root, set);
                   request.root = root;
                   if (set.members()[set.rank()] != root) bytes = {};
                 }
                 const Tensor copy(DType::u8, Shape{static_cast<std::int64_t>(bytes.size())});
                 if (!bytes.empty()) std::memcpy(copy.raw(), bytes.data(), bytes.size());
                 operation.writes = false;
                 add(operation, request, buffer_of(copy), copy.shape());
                 operation.tensors.push_back(copy);
               });
}

OperationPtr start_in_place(OpKind kind, std::span<const TypedBuffer> buffers, std::span<const Shape> shapes,
                            std::span<const Tensor> tensors, const Reduction& reduction,
                            const EagerOptions& options) {
  return start(kind, call_options(options), [&](Operation& operation, Request& request, const SetEngine&) {
    for (std::size_t i = 0; i < buffers.size(); ++i)
      add(operation, request, buffers[i], shapes.empty() ? flat(buffers[i]) : shapes[i]);
    add_reduction(request, reduction);
    operation.tensors.assign(tensors.begin(), tensors.end());
  });
}

// An allreduce in place that is the same as the last one of its name; nullptr where it is not.
OperationPtr start_again(const TypedBuffer& buffer, const Tensor* tensor, const Reduction& reduction,
                         const EagerOptions& options) {
  if (options.name.empty()) return nullptr;
  const auto engine = detail::current_engine();
  const auto set = engine->set(options.process_set.id());
  auto operation = detail::make_operation();
  operation->buffers.push_back(buffer);
  if (tensor != nullptr) operation->tensors.push_back(*tensor);
  const detail::CallAgain call{.kind = OpKind::allreduce,
                               .name = options.name,
                               .buffer = buffer,
                               .shape = tensor == nullptr ? nullptr : &tensor->shape(),
                               .reduction = reduction,
                               .average_over_all = options.join_average == JoinAverage::all};
  return set->submit_again(operation, call) ? operation : nullptr;
}

OperationPtr start_on_copies(OpKind kind, std::span<const TypedBuffer> buffers, std::span<const Shape> shapes,
                             const Reduction& reduction, const EagerOptions& options) {
  return start(kind, call_options(options), [&](Operation& operation, Request& request, const SetEngine&) {
    check_scales(reduction);  // of no tensors, too
    for (const auto& buffer : buffers) check_reducible(reduction, buffer.dtype);
    request.reduction = reduction;
    for (std::size_t i = 0; i < buffers.size(); ++i)
      operation.results.push_back(add_copy(operation, request, buffers[i], shapes[i], *options.allocator));
  });
}

// The whole tensors are reduced in copies, of which the own rows are the result: that has its memory from the
// call on, so that a rank that has none for it tells the others in time.
OperationPtr start_reduce_scatter_of(OpKind kind, std::span<const TypedBuffer> buffers,
                                     std::span<const Shape> shapes, const Reduction& reduction,
                                     const EagerOptions& options) {
  return start(
      kind, call_options(options), [&](Operation& operation, Request& request, const SetEngine& set) {
        check_scales(reduction);  // of no tensors, too
        for (const auto& buffer : buffers) check_reducible(reduction, buffer.dtype);
        if (reduction.op == ReduceOp::adasum)
          throw InvalidArgumentError("reduce_scatter: adasum needs whole tensors; use allreduce");
        request.reduction = reduction;
        const bool is_alone = set.size() == 1;  // all rows are its own
        for (std::size_t i = 0; i < buffers.size(); ++i) {
          check_rows(kind, shapes[i]);
          const Tensor whole = add_copy(operation, request, buffers[i], shapes[i],
                                        is_alone ? *options.allocator : cpu_allocator());
          const auto rows = detail::rows_by_rank(shapes[i].dim(0), set.size())[set.rank()];
          operation.results.push_back(
              is_alone ? whole : Tensor(whole.dtype(), shapes[i].with_dim(0, rows), *options.allocator));
        }
      });
}

OperationPtr start_group(OpKind kind, std::span<const Tensor> tensors, const Reduction& reduction,
                         const EagerOptions& options) {
  std::vector<TypedBuffer> buffers;
  std::vector<Shape> shapes;
  for (const auto& tensor : tensors) {
    buffers.push_back(buffer_of(tensor));
    shapes.push_back(tensor.shape());
  }
  const bool scatters = kind == OpKind::reduce_scatter || kind == OpKind::grouped_reduce_scatter;
  return scatters ? start_reduce_scatter_of(kind, buffers, shapes, reduction, options)
                  : start_on_copies(kind, buffers, shapes, reduction, options);
}

}  // namespace

namespace detail {

Handle<void> start_reduction(const TypedBuffer& elements, const Reduction& reduction,
                             const EagerOptions& options) {
  if (auto operation = start_again(elements, nullptr, reduction, options))
    return Handle<void>(std::move(operation));
  return Handle<void>(start_in_place(OpKind::allreduce, {&elements, 1}, {}, {}, reduction, options));
}

Handle<void> start_grouped_reduction(std::span<const TypedBuffer> members, const Reduction& reduction,
                                     const EagerOptions& options) {
  return Handle<void>(start_in_place(OpKind::grouped_allreduce, members, {}, {}, reduction, options));
}

std::shared_ptr<Operation> start_allgather(const TypedBuffer& rows, const EagerOptions& options) {
  return start_rows_of(OpKind::allgather, Rows(rows), -1, options);
}

std::shared_ptr<Operation> start_reduce_scatter(const TypedBuffer& elements, const Reduction& reduction,
                                                const EagerOptions& options) {
  const Shape shape = flat(elements);
  return start_reduce_scatter_of(OpKind::reduce_scatter, {&elements, 1}, {&shape, 1}, reduction, options);
}

Handle<void> start_broadcast(const TypedBuffer& elements, int root, const EagerOptions& options) {
  return Handle<void>(start(OpKind::broadcast, call_options(options),
                            [&](Operation& operation, Request& request, const SetEngine& set) {
                              check_plain(OpKind::broadcast, elements.dtype);
                              check_root(root, set);
                              request.root = root;
                              add(operation, request, elements, flat(elements));
                            }));
}

std::shared_ptr<Operation> start_alltoall(const TypedBuffer& rows, std::span<const std::int64_t> splits,
                                          const EagerOptions& options) {
  return start_alltoall_of(Rows(rows), splits, options);
}

std::shared_ptr<Operation> start_gather(const TypedBuffer& rows, int root, const EagerOptions& options) {
  return start_rows_of(OpKind::gather, Rows(rows), root, options);
}

std::shared_ptr<Operation> start_scatter(const TypedBuffer& rows, int root, const EagerOptions& options) {
  return start_scatter_of(Rows(rows), root, options);
}

}  // namespace detail

Reduction predivided_average(double factor, int ranks) { return {ReduceOp::sum, 1 / factor, factor / ranks}; }

Handle<Tensor> allreduce_async(const Tensor& tensor, const Reduction& reduction,
                               const EagerOptions& options) {
  return Handle<Tensor>(start_group(OpKind::allreduce, {&tensor, 1}, reduction, options));
}

Handle<void> allreduce_in_place_async(const Tensor& tensor, const Reduction& reduction,
                                      const EagerOptions& options) {
  const TypedBuffer buffer = buffer_of(tensor);
  if (auto operation = start_again(buffer, &tensor, reduction, options))
    return Handle<void>(std::move(operation));
  return Handle<void>(start_in_place(OpKind::allreduce, {&buffer, 1}, {&tensor.shape(), 1}, {&tensor, 1},
                                     reduction, options));
}

Handle<std::vector<Tensor>> grouped_allreduce_async(std::span<const Tensor> tensors,
                                                    const Reduction& reduction, const EagerOptions& options) {
  return Handle<std::vector<Tensor>>(start_group(OpKind::grouped_allreduce, tensors, reduction, options));
}

Handle<Tensor> reduce_scatter_async(const Tensor& tensor, const Reduction& reduction,
                                    const EagerOptions& options) {
  return Handle<Tensor>(start_group(OpKind::reduce_scatter, {&tensor, 1}, reduction, options));
}

Handle<std::vector<Tensor>> grouped_reduce_scatter_async(std::span<const Tensor> tensors,
                                                         const Reduction& reduction,
                                                         const EagerOptions& options) {
  return Handle<std::vector<Tensor>>(
      start_group(OpKind::grouped_reduce_scatter, tensors, reduction, options));
}

Handle<Tensor> allgather_async(const Tensor& tensor, const EagerOptions& options) {
  return Handle<Tensor>(start_rows_of(OpKind::allgather, Rows(tensor), -1, options));
}

Handle<Tensor> broadcast_async(const Tensor& tensor, int root, const EagerOptions& options) {
  return Handle<Tensor>(start(OpKind::broadcast, call_options(options),
                              [&](Operation& operation, Request& request, const SetEngine& set) {
                                check_plain(OpKind::broadcast, tensor.dtype());
                                check_root(root, set);
                                request.root = root;
                                operation.results = {add_copy(operation, request, buffer_of(tensor),
                                                              tensor.shape(), *options.allocator)};
                              }));
}

Handle<void> broadcast_in_place_async(const Tensor& tensor, int root, const EagerOptions& options) {
  return Handle<void>(start(OpKind::broadcast, call_options(options),
                            [&](Operation& operation, Request& request, const SetEngine& set) {
                              check_plain(OpKind::broadcast, tensor.dtype());
                              check_root(root, set);
                              request.root = root;
                              add(operation, request, buffer_of(tensor), tensor.shape());
                              operation.tensors = {tensor};
                            }));
}

Handle<AlltoallResult> alltoall_async(const Tensor& tensor, std::span<const std::int64_t> splits,
                                      const EagerOptions& options) {
  return Handle<AlltoallResult>(start_alltoall_of(Rows(tensor), splits, options));
}

Handle<Tensor> gather_async(const Tensor& tensor, int root, const EagerOptions& options) {
  return Handle<Tensor>(start_rows_of(OpKind::gather, Rows(tensor), root, options));
}

Handle<Tensor> scatter_async(const Tensor& tensor, int root, const EagerOptions& options) {
  return Handle<Tensor>(start_scatter_of(Rows(tensor), root, options));
}

Handle<void> barrier_async(const EagerOptions& options) {
  return Handle<void>(
      start(OpKind::barrier, call_options(options), [](Operation&, Request&, const SetEngine&) {}));
}

Handle<int> join_async(const EagerOptions& options) {
  return Handle<int>(
      start(OpKind::join, call_options(options), [](Operation&, Request&, const SetEngine&) {}));
}

Handle<std::string> broadcast_object_async(std::string_view bytes, int root, const EagerOptions& options) {
  return Handle<std::string>(start_bytes(OpKind::broadcast_object, bytes, root, options));
}

Handle<std::vector<std::string>> allgather_object_async(std::string_view bytes, const EagerOptions& options) {
  return Handle<std::vector<std::string>>(start_bytes(OpKind::allgather_object, bytes, -1, options));
}

EngineStatistics engine_statistics(const ProcessSet& set) {
  const auto counts = detail::current_engine()->set(set.id())->counts();
  return {.negotiation_messages = counts.messages,
          .negotiation_bytes = counts.message_bytes,
          .cache_hits = counts.cache_hits,
          .cache_misses = counts.cache_misses,
          .operations = counts.operations,
          .reductions = counts.reductions,
          .reduced_tensors = counts.reduced_tensors,
          .fusion_bytes = counts.fusion_bytes,
          .cycle_ms = counts.cycle_ms,
          .tuned_at = counts.tuned_at};
}

}  // namespace kolo
