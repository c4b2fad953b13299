// An operation that the ranks have agreed on, as this rank finds it; and what stands for a rank that does not
// contribute, or is alone.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <kolo/collectives/algorithms/communicator.h>
#include <kolo/collectives/engine/operation.h>
#include <kolo/core/tensor/allocator.h>

namespace kolo::detail {

/// An agreed request as this rank finds it.
struct Agreed {
  RequestPtr request;
  std::vector<std::int64_t> rows;  // by rank and tensor, where ranks have their own
  int contributors = 0;
  OperationPtr operation;  // nullptr: this rank has joined, and contributes what changes nothing
};
/// What was decided in one go. It keeps the operations alive.
using AgreedBatch = std::shared_ptr<const std::vector<Agreed>>;

/// One execution: an operation, or several whose tensors were fused.
struct Work {
  std::string label;  // for stall reports
  std::int64_t bytes = 0;
  AgreedBatch agreed;
  std::vector<EngineOperation*> operations;  // those of them that it is about
  std::shared_ptr<Collective> collective;
  // An error that all ranks of the set have agreed on, as opposed to one of the communication.
  std::exception_ptr error;
};
using WorkPtr = std::shared_ptr<Work>;

/// rows[r]: how many of `rows` rows rank r gets.
std::vector<std::int64_t> rows_by_rank(std::int64_t rows, int ranks);
/// What does not change the others' result: zeros, ones, the largest, the smallest.
void fill_neutral(ReduceOp op, const TypedBuffer& buffer);
/// What is left of an operation over one rank.
void run_alone(EngineOperation& operation);

}  // namespace kolo::detail
