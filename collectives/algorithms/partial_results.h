// What a reduction over messages does with the partial results that its ranks send each other.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include <kolo/collectives/algorithms/allreduce_registry.h>
#include <kolo/collectives/reduce/reduction.h>

namespace kolo {

/// Combines the partial results of some ranks each, in the buffer's type.
///
/// A sum of f16 may leave the range of its type where the average that it is for does not (4 × 40000). So
/// when f16 is averaged, the partial result of m ranks is their sum ÷ 2^⌈log₂ m⌉: no larger than the largest
/// element, and with the same digits, but for those that numbers below 2^-14 lack. Dividing by the number of
/// ranks before anything is added (as NCCL's average does) would lose more of these, and other digits too.
class PartialResults {
 public:
  PartialResults(const AlgorithmContext& context, const TypedBuffer& buffer, ReduceOp op)
      : op_(op), dtype_(buffer.dtype), divisor_(op == ReduceOp::average ? context.divisor() : 1) {}

  /// What the partial result of so many ranks has been divided by.
  double scale(int ranks) const {
    const auto others = static_cast<unsigned>(ranks - 1);
    return is_scaled() ? static_cast<double>(std::uint64_t{1} << std::bit_width(others)) : 1;
  }
  /// Of how many numbers the result is the average; 1: of none.
  double divisor() const { return divisor_; }

  /// dst, of dst_ranks ranks, becomes the partial result of them and of src's.
  void combine(std::byte* dst, int dst_ranks, const std::byte* src, int src_ranks,
               std::int64_t elements) const;
  /// The same of the last two: dst becomes the result.
  void finish(std::byte* dst, int dst_ranks, const std::byte* src, int src_ranks,
              std::int64_t elements) const;

 private:
  bool is_scaled() const { return op_ == ReduceOp::average && dtype_ == DType::f16; }

  ReduceOp op_;
  DType dtype_;
  double divisor_;
};

}  // namespace kolo
