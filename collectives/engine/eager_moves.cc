// The eager calls that move elements unchanged from rank to rank.
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
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
using detail::name;
using detail::OperationPtr;
using detail::OpKind;
using detail::Request;
using detail::SetEngine;
using detail::start;

// What goes over the wire as it lies in memory.
void check_plain(OpKind kind, DType dtype) {
  if (dtype == DType::string)
    throw InvalidArgumentError(
        "{} is not defined for string; allgather_object and broadcast_object take texts", name(kind));
}

void check_root(int root, const SetEngine& set) {
  const auto& members = set.members();
  if (std::find(members.begin(), members.end(), root) == members.end())
    throw InvalidArgumentError("root rank {} is outside the process set of {} ranks", root, set.size());
}

// Rows that the engine reads where they lie: the caller's memory, or a tensor, which the operation then
// keeps.
struct Rows {
  explicit Rows(const Tensor& tensor) : buffer(buffer_of(tensor)), shape(tensor.shape()), owner(tensor) {}
  explicit Rows(const TypedBuffer& elements) : buffer(elements), shape(flat(elements)) {}

  TypedBuffer buffer;
  Shape shape;
  Tensor owner;
};

void add_read_only(EngineOperation& operation, Request& request, const Rows& rows) {
  operation.writes = false;
  if (rows.owner) operation.tensors.push_back(rows.owner);
  add(operation, request, rows.buffer, rows.shape);
}

// all: one, or a group's members.
OperationPtr start_rows_of(OpKind kind, std::span<const Rows> all, int root, const EagerOptions& options) {
  return start(kind, call_options(options),
               [&](EngineOperation& operation, Request& request, const SetEngine& set) {
                 if (root >= 0 || kind == OpKind::gather) check_root(root, set);
                 request.root = root;
                 for (const Rows& own : all) {
                   check_plain(kind, own.buffer.dtype);
                   check_rows(kind, own.shape);
                   add_read_only(operation, request, own);
                 }
               });
}

OperationPtr start_rows_of(OpKind kind, const Rows& own, int root, const EagerOptions& options) {
  return start_rows_of(kind, {&own, 1}, root, options);
}

OperationPtr start_broadcast_of(OpKind kind, std::span<const Rows> all, int root,
                                const EagerOptions& options) {
  return start(kind, call_options(options),
               [&](EngineOperation& operation, Request& request, const SetEngine& set) {
                 check_root(root, set);
                 request.root = root;
                 for (const Rows& own : all) {
                   check_plain(kind, own.buffer.dtype);
                   add(operation, request, own.buffer, own.shape);
                   if (own.owner) operation.tensors.push_back(own.owner);
                 }
               });
}

// Into new tensors.
OperationPtr start_broadcast_of_copies(OpKind kind, std::span<const Tensor> tensors, int root,
                                       const EagerOptions& options) {
  return start(kind, call_options(options),
               [&](EngineOperation& operation, Request& request, const SetEngine& set) {
                 check_root(root, set);
                 request.root = root;
                 for (const Tensor& own : tensors) {
                   check_plain(kind, own.dtype());
                   operation.results.push_back(
                       add_copy(operation, request, buffer_of(own), own.shape(), *options.allocator));
                 }
               });
}

std::vector<Rows> rows_of(std::span<const Tensor> tensors) {
  return std::vector<Rows>(tensors.begin(), tensors.end());
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
      [&](EngineOperation& operation, Request& request, const SetEngine& set) {
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
               [&](EngineOperation& operation, Request& request, const SetEngine& set) {
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
               [&](EngineOperation& operation, Request& request, const SetEngine& set) {
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

}  // namespace

namespace detail {

std::shared_ptr<EngineOperation> start_allgather(const TypedBuffer& rows, const EagerOptions& options) {
  return start_rows_of(OpKind::allgather, Rows(rows), -1, options);
}

Handle<void> start_broadcast(const TypedBuffer& elements, int root, const EagerOptions& options) {
  const Rows own(elements);
  return Handle<void>(start_broadcast_of(OpKind::broadcast, {&own, 1}, root, options));
}

Handle<void> start_grouped_broadcast(std::span<const TypedBuffer> members, int root,
                                     const EagerOptions& options) {
  const std::vector<Rows> all(members.begin(), members.end());
  return Handle<void>(start_broadcast_of(OpKind::grouped_broadcast, all, root, options));
}

std::shared_ptr<EngineOperation> start_alltoall(const TypedBuffer& rows, std::span<const std::int64_t> splits,
                                                const EagerOptions& options) {
  return start_alltoall_of(Rows(rows), splits, options);
}

std::shared_ptr<EngineOperation> start_gather(const TypedBuffer& rows, int root,
                                              const EagerOptions& options) {
  return start_rows_of(OpKind::gather, Rows(rows), root, options);
}

std::shared_ptr<EngineOperation> start_scatter(const TypedBuffer& rows, int root,
                                               const EagerOptions& options) {
  return start_scatter_of(Rows(rows), root, options);
}

}  // namespace detail

Handle<Tensor> allgather_async(const Tensor& tensor, const EagerOptions& options) {
  return Handle<Tensor>(start_rows_of(OpKind::allgather, Rows(tensor), -1, options));
}

Handle<std::vector<Tensor>> grouped_allgather_async(std::span<const Tensor> tensors,
                                                    const EagerOptions& options) {
  return Handle<std::vector<Tensor>>(start_rows_of(OpKind::grouped_allgather, rows_of(tensors), -1, options));
}

Handle<Tensor> broadcast_async(const Tensor& tensor, int root, const EagerOptions& options) {
  return Handle<Tensor>(start_broadcast_of_copies(OpKind::broadcast, {&tensor, 1}, root, options));
}

Handle<void> broadcast_in_place_async(const Tensor& tensor, int root, const EagerOptions& options) {
  const Rows own(tensor);
  return Handle<void>(start_broadcast_of(OpKind::broadcast, {&own, 1}, root, options));
}

Handle<std::vector<Tensor>> grouped_broadcast_async(std::span<const Tensor> tensors, int root,
                                                    const EagerOptions& options) {
  return Handle<std::vector<Tensor>>(
      start_broadcast_of_copies(OpKind::grouped_broadcast, tensors, root, options));
}

Handle<void> grouped_broadcast_in_place_async(std::span<const Tensor> tensors, int root,
                                              const EagerOptions& options) {
  return Handle<void>(start_broadcast_of(OpKind::grouped_broadcast, rows_of(tensors), root, options));
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

Handle<std::string> broadcast_object_async(std::string_view bytes, int root, const EagerOptions& options) {
  return Handle<std::string>(start_bytes(OpKind::broadcast_object, bytes, root, options));
}

Handle<std::vector<std::string>> allgather_object_async(std::string_view bytes, const EagerOptions& options) {
  return Handle<std::vector<std::string>>(start_bytes(OpKind::allgather_object, bytes, -1, options));
}

}  // namespace kolo
