// Collectives for any training loop: on memory, at once, without a graph.
//
//   std::vector<float> gradient = …;
//   kolo::allreduce(std::span(gradient), kolo::ReduceOp::average);                   // in place
//   auto sum = kolo::allreduce_async(tensor, kolo::ReduceOp::sum, {.name = "loss"});  // a new tensor
//   … sum.wait() …
//
// Every operation has a name, under which the ranks find each other's calls; see EagerOptions. Named
// operations may come in a different order on each rank and from several threads; all ranks execute them in
// one order, small allreduces together. A span given to an `_async` function must live until the handle's
// wait() has returned; a tensor may be a temporary, since the operation keeps it. Neither must be touched
// meanwhile.
//
// All functions throw FailedPreconditionError `kolo is not initialised; call kolo::init() first` without
// init(); InvalidArgumentError for wrong arguments, a rank outside the process set, and a name that is
// pending. What the other ranks' calls bring is thrown by the blocking function or by wait(): see
// docs/eager.md. After such an error the engine goes on. Any thread but kolo's own.
// One rank: the same results without any traffic.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <kolo/collectives/engine/handle.h>
#include <kolo/collectives/engine/observer.h>
#include <kolo/collectives/engine/process_set.h>
#include <kolo/collectives/reduce/reduction.h>
#include <kolo/core/tensor/allocator.h>

namespace kolo {

/// What an average is divided by while ranks have joined: the number of those that have not, or all.
enum class JoinAverage : std::uint8_t { active, all };

/// How one call is matched with those of the other ranks.
struct EagerOptions {
  // The same on all ranks for calls that belong together, free again when the operation has ended on this
  // rank. "": `<operation>.noname.<k>`, k counted for each operation and process set, so that unnamed calls
  // must come in the same order on all ranks. When all have joined, they count on from the highest.
  std::string name = {};
  ProcessSet process_set = {};
  JoinAverage join_average = JoinAverage::active;
  Allocator* allocator = &cpu_allocator();  // of results; outlives them
};

/// The average of gradients that are divided by `factor` before they are summed and by the rest after:
/// average over `ranks` with less overflow than a sum.
Reduction predivided_average(double factor, int ranks);

namespace detail {
// Behind the templates below.
Handle<void> start_reduction(const TypedBuffer& elements, const Reduction& reduction,
                             const EagerOptions& options);
Handle<void> start_grouped_reduction(std::span<const TypedBuffer> members, const Reduction& reduction,
                                     const EagerOptions& options);
std::shared_ptr<EngineOperation> start_allgather(const TypedBuffer& rows, const EagerOptions& options);
std::shared_ptr<EngineOperation> start_reduce_scatter(const TypedBuffer& elements, const Reduction& reduction,
                                                      const EagerOptions& options);
Handle<void> start_broadcast(const TypedBuffer& elements, int root, const EagerOptions& options);
Handle<void> start_grouped_broadcast(std::span<const TypedBuffer> members, int root,
                                     const EagerOptions& options);
std::shared_ptr<EngineOperation> start_alltoall(const TypedBuffer& rows, std::span<const std::int64_t> splits,
                                                const EagerOptions& options);
std::shared_ptr<EngineOperation> start_gather(const TypedBuffer& rows, int root, const EagerOptions& options);
std::shared_ptr<EngineOperation> start_scatter(const TypedBuffer& rows, int root,
                                               const EagerOptions& options);
// Input that is only read.
template <typename T>
using Element = std::remove_const_t<T>;
template <typename T, std::size_t N>
TypedBuffer read_only(std::span<T, N> elements) {
  return TypedBuffer::of(std::span(const_cast<Element<T>*>(elements.data()), elements.size()));
}
}  // namespace detail

/// The elements of all ranks combined; the same bits on every rank. All ranks give the same dtype, shape and
/// reduction. Throws InvalidArgumentError as check_reducible does.
Handle<Tensor> allreduce_async(const Tensor& tensor, const Reduction& reduction = ReduceOp::average,
                               const EagerOptions& options = {});
inline Tensor allreduce(const Tensor& tensor, const Reduction& reduction = ReduceOp::average,
                        const EagerOptions& options = {}) {
  return allreduce_async(tensor, reduction, options).wait();
}
/// In place.
Handle<void> allreduce_in_place_async(const Tensor& tensor, const Reduction& reduction = ReduceOp::average,
                                      const EagerOptions& options = {});
inline void allreduce_in_place(const Tensor& tensor, const Reduction& reduction = ReduceOp::average,
                               const EagerOptions& options = {}) {
  allreduce_in_place_async(tensor, reduction, options).wait();
}
template <typename T, std::size_t N>
Handle<void> allreduce_async(std::span<T, N> elements, const Reduction& reduction = ReduceOp::average,
                             const EagerOptions& options = {}) {
  return detail::start_reduction(TypedBuffer::of(std::span<T>(elements)), reduction, options);
}
template <typename T, std::size_t N>
void allreduce(std::span<T, N> elements, const Reduction& reduction = ReduceOp::average,
               const EagerOptions& options = {}) {
  allreduce_async(elements, reduction, options).wait();
}

/// Several tensors under one name: executed when all of them are ready on every rank, and all or none.
Handle<std::vector<Tensor>> grouped_allreduce_async(std::span<const Tensor> tensors,
                                                    const Reduction& reduction = ReduceOp::average,
                                                    const EagerOptions& options = {});
inline std::vector<Tensor> grouped_allreduce(std::span<const Tensor> tensors,
                                             const Reduction& reduction = ReduceOp::average,
                                             const EagerOptions& options = {}) {
  return grouped_allreduce_async(tensors, reduction, options).wait();
}
/// In place.
Handle<void> grouped_allreduce_in_place_async(std::span<const Tensor> tensors,
                                              const Reduction& reduction = ReduceOp::average,
                                              const EagerOptions& options = {});
inline void grouped_allreduce_in_place(std::span<const Tensor> tensors,
                                       const Reduction& reduction = ReduceOp::average,
                                       const EagerOptions& options = {}) {
  grouped_allreduce_in_place_async(tensors, reduction, options).wait();
}
template <typename T>
Handle<void> grouped_allreduce_async(std::span<const std::span<T>> members,
                                     const Reduction& reduction = ReduceOp::average,
                                     const EagerOptions& options = {}) {
  std::vector<TypedBuffer> buffers;
  for (const auto member : members) buffers.push_back(TypedBuffer::of(member));
  return detail::start_grouped_reduction(buffers, reduction, options);
}
template <typename T>
void grouped_allreduce(std::span<const std::span<T>> members, const Reduction& reduction = ReduceOp::average,
                       const EagerOptions& options = {}) {
  grouped_allreduce_async(members, reduction, options).wait();
}

/// This rank's rows of the ranks' tensors combined: of n rows the first n mod R ranks get ⌈n/R⌉, the others
/// ⌊n/R⌋. All ranks give the same dtype, shape and reduction (any op but adasum). A scalar:
/// InvalidArgumentError `needs at least one dimension`.
Handle<Tensor> reduce_scatter_async(const Tensor& tensor, const Reduction& reduction = ReduceOp::average,
                                    const EagerOptions& options = {});
inline Tensor reduce_scatter(const Tensor& tensor, const Reduction& reduction = ReduceOp::average,
                             const EagerOptions& options = {}) {
  return reduce_scatter_async(tensor, reduction, options).wait();
}
Handle<std::vector<Tensor>> grouped_reduce_scatter_async(std::span<const Tensor> tensors,
                                                         const Reduction& reduction = ReduceOp::average,
                                                         const EagerOptions& options = {});
inline std::vector<Tensor> grouped_reduce_scatter(std::span<const Tensor> tensors,
                                                  const Reduction& reduction = ReduceOp::average,
                                                  const EagerOptions& options = {}) {
  return grouped_reduce_scatter_async(tensors, reduction, options).wait();
}
/// Each element is a row.
template <typename T, std::size_t N>
Handle<std::vector<detail::Element<T>>> reduce_scatter_async(std::span<T, N> elements,
                                                             const Reduction& reduction = ReduceOp::average,
                                                             const EagerOptions& options = {}) {
  return Handle<std::vector<detail::Element<T>>>(
      detail::start_reduce_scatter(detail::read_only(elements), reduction, options));
}
template <typename T, std::size_t N>
std::vector<detail::Element<T>> reduce_scatter(std::span<T, N> elements,
                                               const Reduction& reduction = ReduceOp::average,
                                               const EagerOptions& options = {}) {
  return reduce_scatter_async(elements, reduction, options).wait();
}

/// The rows of all ranks, in rank order. Ranks may give different numbers of rows, also none; dtype and the
/// other dimensions are the same. A scalar: InvalidArgumentError `needs at least one dimension`. No memory
/// for the result on one rank: ResourceExhaustedError on all, as in alltoall, gather and scatter.
Handle<Tensor> allgather_async(const Tensor& tensor, const EagerOptions& options = {});
inline Tensor allgather(const Tensor& tensor, const EagerOptions& options = {}) {
  return allgather_async(tensor, options).wait();
}
/// Each element is a row.
template <typename T, std::size_t N>
Handle<std::vector<detail::Element<T>>> allgather_async(std::span<T, N> elements,
                                                        const EagerOptions& options = {}) {
  return Handle<std::vector<detail::Element<T>>>(
      detail::start_allgather(detail::read_only(elements), options));
}
template <typename T, std::size_t N>
std::vector<detail::Element<T>> allgather(std::span<T, N> elements, const EagerOptions& options = {}) {
  return allgather_async(elements, options).wait();
}

/// The rows of several tensors under one name: gathered when all of them are ready on every rank, and all or
/// none. Each has its own dtype and number of rows; the same members in the same order on all ranks.
/// Handle::rows_by_rank() has a number for each member of rank 0, then of rank 1, … .
Handle<std::vector<Tensor>> grouped_allgather_async(std::span<const Tensor> tensors,
                                                    const EagerOptions& options = {});
inline std::vector<Tensor> grouped_allgather(std::span<const Tensor> tensors,
                                             const EagerOptions& options = {}) {
  return grouped_allgather_async(tensors, options).wait();
}

/// root's elements on every rank; all give the same dtype and shape. root: the job's number of a rank in the
/// set, else InvalidArgumentError `root rank <k> is outside the process set of <R> ranks`.
Handle<Tensor> broadcast_async(const Tensor& tensor, int root, const EagerOptions& options = {});
inline Tensor broadcast(const Tensor& tensor, int root, const EagerOptions& options = {}) {
  return broadcast_async(tensor, root, options).wait();
}
/// In place.
Handle<void> broadcast_in_place_async(const Tensor& tensor, int root, const EagerOptions& options = {});
inline void broadcast_in_place(const Tensor& tensor, int root, const EagerOptions& options = {}) {
  broadcast_in_place_async(tensor, root, options).wait();
}
template <typename T, std::size_t N>
Handle<void> broadcast_async(std::span<T, N> elements, int root, const EagerOptions& options = {}) {
  return detail::start_broadcast(TypedBuffer::of(std::span<T>(elements)), root, options);
}
template <typename T, std::size_t N>
void broadcast(std::span<T, N> elements, int root, const EagerOptions& options = {}) {
  broadcast_async(elements, root, options).wait();
}

/// Several tensors of root under one name, as the parameters of a model: all or none. Short ones travel
/// together.
Handle<std::vector<Tensor>> grouped_broadcast_async(std::span<const Tensor> tensors, int root,
                                                    const EagerOptions& options = {});
inline std::vector<Tensor> grouped_broadcast(std::span<const Tensor> tensors, int root,
                                             const EagerOptions& options = {}) {
  return grouped_broadcast_async(tensors, root, options).wait();
}
/// In place.
Handle<void> grouped_broadcast_in_place_async(std::span<const Tensor> tensors, int root,
                                              const EagerOptions& options = {});
inline void grouped_broadcast_in_place(std::span<const Tensor> tensors, int root,
                                       const EagerOptions& options = {}) {
  grouped_broadcast_in_place_async(tensors, root, options).wait();
}
template <typename T>
Handle<void> grouped_broadcast_async(std::span<const std::span<T>> members, int root,
                                     const EagerOptions& options = {}) {
  std::vector<TypedBuffer> buffers;
  for (const auto member : members) buffers.push_back(TypedBuffer::of(member));
  return detail::start_grouped_broadcast(buffers, root, options);
}
template <typename T>
void grouped_broadcast(std::span<const std::span<T>> members, int root, const EagerOptions& options = {}) {
  grouped_broadcast_async(members, root, options).wait();
}

/// splits[j] rows go to rank j of the set, one behind the other; the result's rows come in rank order.
/// Without splits every rank gets as many. Throws InvalidArgumentError `splits must have <R> non-negative
/// entries that sum to <n>`, or where <n> rows do not divide by <R>.
Handle<AlltoallResult> alltoall_async(const Tensor& tensor, std::span<const std::int64_t> splits = {},
                                      const EagerOptions& options = {});
inline AlltoallResult alltoall(const Tensor& tensor, std::span<const std::int64_t> splits = {},
                               const EagerOptions& options = {}) {
  return alltoall_async(tensor, splits, options).wait();
}
/// Each element is a row.
template <typename T, std::size_t N>
Handle<AlltoallRows<detail::Element<T>>> alltoall_async(std::span<T, N> elements,
                                                        std::span<const std::int64_t> splits = {},
                                                        const EagerOptions& options = {}) {
  return Handle<AlltoallRows<detail::Element<T>>>(
      detail::start_alltoall(detail::read_only(elements), splits, options));
}
template <typename T, std::size_t N>
AlltoallRows<detail::Element<T>> alltoall(std::span<T, N> elements, std::span<const std::int64_t> splits = {},
                                          const EagerOptions& options = {}) {
  return alltoall_async(elements, splits, options).wait();
}

/// The rows of all ranks, as of allgather, on the root; no rows elsewhere.
Handle<Tensor> gather_async(const Tensor& tensor, int root, const EagerOptions& options = {});
inline Tensor gather(const Tensor& tensor, int root, const EagerOptions& options = {}) {
  return gather_async(tensor, root, options).wait();
}
template <typename T, std::size_t N>
Handle<std::vector<detail::Element<T>>> gather_async(std::span<T, N> elements, int root,
                                                     const EagerOptions& options = {}) {
  return Handle<std::vector<detail::Element<T>>>(
      detail::start_gather(detail::read_only(elements), root, options));
}
template <typename T, std::size_t N>
std::vector<detail::Element<T>> gather(std::span<T, N> elements, int root, const EagerOptions& options = {}) {
  return gather_async(elements, root, options).wait();
}

/// Equal shares of root's rows, in rank order. What other ranks give is not looked at. Throws
/// InvalidArgumentError where the root's rows do not divide by the number of ranks.
Handle<Tensor> scatter_async(const Tensor& tensor, int root, const EagerOptions& options = {});
inline Tensor scatter(const Tensor& tensor, int root, const EagerOptions& options = {}) {
  return scatter_async(tensor, root, options).wait();
}
template <typename T, std::size_t N>
Handle<std::vector<detail::Element<T>>> scatter_async(std::span<T, N> elements, int root,
                                                      const EagerOptions& options = {}) {
  return Handle<std::vector<detail::Element<T>>>(
      detail::start_scatter(detail::read_only(elements), root, options));
}
template <typename T, std::size_t N>
std::vector<detail::Element<T>> scatter(std::span<T, N> elements, int root,
                                        const EagerOptions& options = {}) {
  return scatter_async(elements, root, options).wait();
}

/// Ends when every rank of the set has called it.
Handle<void> barrier_async(const EagerOptions& options = {});
inline void barrier(const EagerOptions& options = {}) { barrier_async(options).wait(); }

/// This rank has no more data. Until every rank of the set has called it, this one contributes to the
/// allreduces of others what changes nothing, no rows to their allgathers, and counts as ready for their
/// barriers; other operations end in FailedPreconditionError `is not supported while rank <r> has joined` on
/// the ranks that call them. Returns the last rank that joined, the same on all.
Handle<int> join_async(const EagerOptions& options = {});
inline int join(const EagerOptions& options = {}) { return join_async(options).wait(); }

/// root's bytes on every rank; what others give is not looked at.
Handle<std::string> broadcast_object_async(std::string_view bytes, int root,
                                           const EagerOptions& options = {});
inline std::string broadcast_object(std::string_view bytes, int root, const EagerOptions& options = {}) {
  return broadcast_object_async(bytes, root, options).wait();
}
/// Every rank's bytes, in rank order.
Handle<std::vector<std::string>> allgather_object_async(std::string_view bytes,
                                                        const EagerOptions& options = {});
inline std::vector<std::string> allgather_object(std::string_view bytes, const EagerOptions& options = {}) {
  return allgather_object_async(bytes, options).wait();
}
/// The same for a protobuf message, or whatever else has these two functions.
template <typename Message>
requires requires(Message m) { m.ParseFromString(m.SerializeAsString()); }
Message broadcast_object(const Message& message, int root, const EagerOptions& options = {}) {
  Message received;
  received.ParseFromString(broadcast_object(std::string_view(message.SerializeAsString()), root, options));
  return received;
}
template <typename Message>
requires requires(Message m) { m.ParseFromString(m.SerializeAsString()); }
std::vector<Message> allgather_object(const Message& message, const EagerOptions& options = {}) {
  std::vector<Message> all;
  for (const auto& bytes : allgather_object(std::string_view(message.SerializeAsString()), options))
    all.emplace_back().ParseFromString(bytes);
  return all;
}
/// The same for a JSON value (nlohmann::json).
template <typename Json>
requires requires(Json value) { Json::parse(value.dump()); }
Json broadcast_object(const Json& value, int root, const EagerOptions& options = {}) {
  return Json::parse(broadcast_object(std::string_view(value.dump()), root, options));
}
template <typename Json>
requires requires(Json value) { Json::parse(value.dump()); }
std::vector<Json> allgather_object(const Json& value, const EagerOptions& options = {}) {
  std::vector<Json> all;
  for (const auto& text : allgather_object(std::string_view(value.dump()), options))
    all.push_back(Json::parse(text));
  return all;
}

/// Of this rank, for a process set.
EngineStatistics engine_statistics(const ProcessSet& set = {});

// For bindings that check a call's arguments before kolo sees them.

/// This rank refuses its own call of `operation` ("allreduce", "grouped_broadcast", …: the functions' names).
/// The other ranks, which would wait for it, end in FailedPreconditionError `rank 1 refused <name>: <text>`.
/// Does not wait. An unnamed call is counted as if it had been made. Throws InvalidArgumentError for an
/// operation that does not exist, FailedPreconditionError without init(). Any thread but kolo's own.
void refuse_call(std::string_view operation, std::string_view text, const EagerOptions& options = {});

}  // namespace kolo
