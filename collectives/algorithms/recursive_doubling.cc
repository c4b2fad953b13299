#include <kolo/collectives/algorithms/recursive_doubling.h>

#include <cstring>
#include <utility>
#include <vector>

#include <kolo/collectives/algorithms/allreduce_registry.h>
#include <kolo/collectives/algorithms/partial_results.h>
#include <kolo/collectives/algorithms/rounds.h>

namespace kolo {
namespace {

class RecursiveDoubling final : public Collective {
 public:
  RecursiveDoubling(const AlgorithmContext& context, const TypedBuffer& buffer, ReduceOp op)
      : buffer_(buffer),
        partial_(context, buffer, op),
        scratch_(static_cast<std::size_t>(buffer.elements) * size_of(buffer.dtype)),
        rounds_(context.network, context.chunk_bytes) {
    const int rank = context.network.rank(), ranks = context.network.size();
    const std::span<std::byte> all{buffer.bytes, scratch_.size()};
    const auto take = [&](int from) {
      rounds_.receive(from, scratch_);
      rounds_.end_round([this] { partial_.combine(buffer_.bytes, 1, scratch_.data(), 1, buffer_.elements); });
    };
    fold_around(rounds_, rank, ranks, all, take, [&](int power) { exchange(rank, ranks, power, all); });
  }

  void start() override { rounds_.start(); }
  Progress progress() override { return rounds_.progress(); }

 private:
  // The result is where the lower rank's operand was, whether that came or was here.
  void exchange(int rank, int ranks, int power, std::span<std::byte> all) {
    std::span<std::byte> own = all, other = scratch_;
    for (int distance = 1; distance < power; distance *= 2) {
      rounds_.send(rank ^ distance, own);
      rounds_.receive(rank ^ distance, other);
      if ((rank & distance) != 0) std::swap(own, other);
      const int in_lower = ranks_combined(rank & ~distance, distance, ranks);
      const int in_higher = ranks_combined(rank | distance, distance, ranks);
      rounds_.end_round([this, own, in_lower, other, in_higher, is_last = distance * 2 == power] {
        if (is_last) partial_.finish(own.data(), in_lower, other.data(), in_higher, buffer_.elements);
        else partial_.combine(own.data(), in_lower, other.data(), in_higher, buffer_.elements);
      });
    }
    if (own.data() != all.data() && !all.empty())
      rounds_.end_round([this, all] { std::memcpy(all.data(), scratch_.data(), all.size()); });
  }

  const TypedBuffer buffer_;
  const PartialResults partial_;
  std::vector<std::byte> scratch_;
  Rounds rounds_;
};

const RegisterAllreduce recursive_doubling("recursive_doubling", recursive_doubling_allreduce);

}  // namespace

std::shared_ptr<Collective> recursive_doubling_allreduce(const AlgorithmContext& context,
                                                         const TypedBuffer& buffer, ReduceOp op) {
  check_reducible(op, buffer.dtype);
  return std::make_shared<RecursiveDoubling>(context, buffer, op);
}

}  // namespace kolo
