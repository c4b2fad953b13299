// What one rank wants to have done under a name: everything about it that the ranks compare.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <kolo/collectives/engine/wire.h>
#include <kolo/collectives/reduce/reduction.h>
#include <kolo/core/tensor/shape.h>

namespace kolo::detail {

enum class OpKind : std::uint8_t {
  allreduce,
  grouped_allreduce,
  reduce_scatter,
  grouped_reduce_scatter,
  allgather,
  broadcast,
  alltoall,
  gather,
  scatter,
  barrier,
  join,
  process_set,
  broadcast_object,
  allgather_object
};
inline constexpr int kOpKinds = 14;

/// "allreduce", "grouped_allreduce", …: the function's own name.
const char* name(OpKind kind);
/// Ranks may give different numbers of rows: allgather, alltoall, gather, objects.
bool has_own_rows(OpKind kind);
bool is_reduction(OpKind kind);
/// May be called while a rank has joined.
bool is_legal_while_joined(OpKind kind);

struct TensorSpec {
  DType dtype = DType::f32;
  Shape shape;
  bool operator==(const TensorSpec&) const = default;
  std::int64_t bytes() const { return shape.elements() * static_cast<std::int64_t>(size_of(dtype)); }
};

struct Request {
  std::string name;
  OpKind kind = OpKind::allreduce;
  std::vector<TensorSpec> tensors;  // one; a group's members; none for a barrier and a scatter's receivers
  Reduction reduction;
  bool average_over_all = false;  // also over the ranks that have joined
  int root = -1;                  // a global rank, for operations that have one
  std::string device = "cpu";     // its kind
  std::string payload;            // what else must agree, as text: a new process set's ranks
  bool named = true;              // by the caller, so that the name may come again
  // Where the response cache of this rank has found it: the communication thread's own, and no part of it.
  mutable int slot_hint = -1;

  std::int64_t rows() const {
    return tensors.empty() || tensors[0].shape.rank() == 0 ? 0 : tensors[0].shape.dim(0);
  }
  std::int64_t bytes() const;
};
using RequestPtr = std::shared_ptr<const Request>;

/// The ranks that gave these may execute them together. Rows, where ranks have their own, do not count.
bool agree(const Request& a, const Request& b);
/// `Mismatched shapes for x: rank 0 has [17], rank 1 has [18]`; "" if they agree.
std::string disagreement(const Request& a, int rank_of_a, const Request& b, int rank_of_b);

void write(ByteWriter& to, const Request& request);
Request read_request(ByteReader& from);

}  // namespace kolo::detail
