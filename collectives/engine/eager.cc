#include <kolo/collectives/engine/eager.h>

#include <utility>

#include <kolo/collectives/engine/eager_internal.h>

namespace kolo {
namespace {

using detail::add;
using detail::add_copy;
using detail::buffer_of;
using detail::call_options;
using detail::check_rows;
using detail::EngineOperation;
using detail::flat;
using detail::OperationPtr;
using detail::OpKind;
using detail::Request;
using detail::SetEngine;
using detail::start;

void add_reduction(Request& request, const Reduction& reduction) {
  check_scales(reduction);  // of no tensors, too
  for (const auto& tensor : request.tensors) check_reducible(reduction, tensor.dtype);
  request.reduction = reduction;
}

OperationPtr start_in_place(OpKind kind, std::span<const TypedBuffer> buffers, std::span<const Shape> shapes,
                            std::span<const Tensor> tensors, const Reduction& reduction,
                            const EagerOptions& options) {
  return start(kind, call_options(options),
               [&](EngineOperation& operation, Request& request, const SetEngine&) {
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
  return start(kind, call_options(options),
               [&](EngineOperation& operation, Request& request, const SetEngine&) {
                 check_scales(reduction);  // of no tensors, too
                 for (const auto& buffer : buffers) check_reducible(reduction, buffer.dtype);
                 request.reduction = reduction;
                 for (std::size_t i = 0; i < buffers.size(); ++i)
                   operation.results.push_back(
                       add_copy(operation, request, buffers[i], shapes[i], *options.allocator));
               });
}

// The whole tensors are reduced in copies, of which the own rows are the result: that has its memory from the
// call on, so that a rank that has none for it tells the others in time.
OperationPtr start_reduce_scatter_of(OpKind kind, std::span<const TypedBuffer> buffers,
                                     std::span<const Shape> shapes, const Reduction& reduction,
                                     const EagerOptions& options) {
  return start(
      kind, call_options(options), [&](EngineOperation& operation, Request& request, const SetEngine& set) {
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

struct TensorGroup {
  explicit TensorGroup(std::span<const Tensor> tensors) {
    for (const auto& tensor : tensors) {
      buffers.push_back(buffer_of(tensor));
      shapes.push_back(tensor.shape());
    }
  }
  std::vector<TypedBuffer> buffers;
  std::vector<Shape> shapes;
};

OperationPtr start_group(OpKind kind, std::span<const Tensor> tensors, const Reduction& reduction,
                         const EagerOptions& options) {
  const TensorGroup group(tensors);
  const bool scatters = kind == OpKind::reduce_scatter || kind == OpKind::grouped_reduce_scatter;
  return scatters ? start_reduce_scatter_of(kind, group.buffers, group.shapes, reduction, options)
                  : start_on_copies(kind, group.buffers, group.shapes, reduction, options);
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

std::shared_ptr<EngineOperation> start_reduce_scatter(const TypedBuffer& elements, const Reduction& reduction,
                                                      const EagerOptions& options) {
  const Shape shape = flat(elements);
  return start_reduce_scatter_of(OpKind::reduce_scatter, {&elements, 1}, {&shape, 1}, reduction, options);
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

Handle<void> grouped_allreduce_in_place_async(std::span<const Tensor> tensors, const Reduction& reduction,
                                              const EagerOptions& options) {
  const TensorGroup group(tensors);
  return Handle<void>(
      start_in_place(OpKind::grouped_allreduce, group.buffers, group.shapes, tensors, reduction, options));
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

Handle<void> barrier_async(const EagerOptions& options) {
  return Handle<void>(
      start(OpKind::barrier, call_options(options), [](EngineOperation&, Request&, const SetEngine&) {}));
}

Handle<int> join_async(const EagerOptions& options) {
  return Handle<int>(
      start(OpKind::join, call_options(options), [](EngineOperation&, Request&, const SetEngine&) {}));
}

EngineStatistics engine_statistics(const ProcessSet& set) {
  return detail::current_engine()->set(set.id())->statistics();
}

}  // namespace kolo
