#include <kolo/collectives/algorithms/recursive_doubling.h>

#include <cstring>
#include <utility>
#include <vector>

#include <kolo/collectives/algorithms/allreduce_registry.h>
#include <kolo/collectives/algorithms/rounds.h>
#include <kolo/collectives/reduce/reduce.h>

namespace kolo {
namespace {

class RecursiveDoubling final : public Collective {
 public:
  RecursiveDoubling(const AlgorithmContext& context, const TypedBuffer& buffer, ReduceOp op)
      : buffer_(buffer),
        op_(op),
        divisor_(op == ReduceOp::average ? context.divisor() : 1),
        scratch_(static_cast<std::size_t>(buffer.elements) * size_of(buffer.dtype)),
        rounds_(context.network, context.chunk_bytes) {
    const int rank = context.network.rank();
    const std::span<std::byte> all{buffer.bytes, scratch_.size()};
    const auto take = [&](int from) {
      rounds_.receive(from, scratch_);
      rounds_.end_round([this] { combine(buffer_.bytes, scratch_.data(), 1); });
    };
    fold_around(rounds_, rank, context.network.size(), all, take,
                [&](int power) { exchange(rank, power, all); });
  }

  void start() override { rounds_.start(); }
  Progress progress() override { return rounds_.progress(); }

 private:
  // The result is where the lower rank's operand was, whether that came or was here.
  void exchange(int rank, int power, std::span<std::byte> all) {
    std::span<std::byte> own = all, other = scratch_;
    for (int distance = 1; distance < power; distance *= 2) {
      rounds_.send(rank ^ distance, own);
      rounds_.receive(rank ^ distance, other);
      if ((rank & distance) != 0) std::swap(own, other);
      rounds_.end_round([this, own, other, divisor = distance * 2 == power ? divisor_ : 1] {
        combine(own.data(), other.data(), divisor);
      });
    }
    if (own.data() != all.data() && !all.empty())
      rounds_.end_round([this, all] { std::memcpy(all.data(), scratch_.data(), all.size()); });
  }

  void combine(std::byte* lower, const std::byte* higher, int divisor) {
    if (divisor > 1) reduce_and_divide(buffer_.dtype, lower, higher, buffer_.elements, divisor);
    else reduce(op_, buffer_.dtype, lower, higher, buffer_.elements);
  }

  const TypedBuffer buffer_;
  const ReduceOp op_;
  const int divisor_;
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
