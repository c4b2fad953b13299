#include <kolo/collectives/algorithms/halving_doubling.h>

#include <utility>
#include <vector>

#include <kolo/collectives/algorithms/allreduce_registry.h>
#include <kolo/collectives/algorithms/partner_ranks.h>
#include <kolo/collectives/algorithms/rounds.h>
#include <kolo/collectives/reduce.h>

namespace kolo {
namespace {

struct Range {
  std::int64_t begin, end;  // elements
  std::int64_t size() const { return end - begin; }
};

class HalvingDoubling final : public Collective {
 public:
  HalvingDoubling(const AlgorithmContext& context, const TypedBuffer& buffer, ReduceOp op)
      : buffer_(buffer),
        op_(op),
        divisor_(op == ReduceOp::average ? context.divisor() : 1),
        element_bytes_(static_cast<std::int64_t>(size_of(buffer.dtype))),
        rounds_(context.network, context.chunk_bytes) {
    const int rank = context.network.rank(), ranks = context.network.size();
    const int power = power_of_two_below(ranks);
    const bool has_folded = rank + power < ranks;
    const Range all{0, buffer.elements};
    scratch_.resize(
        static_cast<std::size_t>((has_folded ? all.size() : (all.size() + 1) / 2) * element_bytes_));
    if (rank >= power) {
      rounds_.send(rank - power, bytes(all));
      rounds_.end_round();
      rounds_.receive(rank - power, bytes(all));
      rounds_.end_round();
      return;
    }
    if (has_folded) {
      receive_and_reduce(rank + power, all, /*is_last=*/false);
      rounds_.end_round();
    }
    halve_and_double(rank, power, all);
    if (has_folded) {
      rounds_.send(rank + power, bytes(all));
      rounds_.end_round();
    }
  }

  void start() override { rounds_.start(); }
  Progress progress() override { return rounds_.progress(); }

 private:
  // Of a range that both share, the rank whose bit is 0 keeps the lower half.
  void halve_and_double(int rank, int power, Range range) {
    std::vector<std::pair<Range, Range>> halves;  // kept, given away
    for (int distance = 1; distance < power; distance *= 2) {
      const std::int64_t middle = range.begin + range.size() / 2;
      const Range lower{range.begin, middle}, upper{middle, range.end};
      const bool keeps_lower = (rank & distance) == 0;
      halves.emplace_back(keeps_lower ? lower : upper, keeps_lower ? upper : lower);
      rounds_.send(rank ^ distance, bytes(halves.back().second));
      receive_and_reduce(rank ^ distance, halves.back().first, distance * 2 == power);
      rounds_.end_round();
      range = halves.back().first;
    }
    for (int distance = power / 2; distance >= 1; distance /= 2, halves.pop_back()) {
      rounds_.send(rank ^ distance, bytes(halves.back().first));
      rounds_.receive(rank ^ distance, bytes(halves.back().second));
      rounds_.end_round();
    }
  }

  void receive_and_reduce(int from, Range range, bool is_last) {
    const auto bytes_here = bytes(range);
    rounds_.receive(from, std::span(scratch_).first(bytes_here.size()),
                    [this, is_last, dst = bytes_here.data()](std::int64_t first_byte, std::int64_t size) {
                      const std::int64_t elements = size / element_bytes_;
                      const std::byte* src = scratch_.data() + first_byte;
                      if (is_last && divisor_ > 1)
                        reduce_and_divide(buffer_.dtype, dst + first_byte, src, elements, divisor_);
                      else reduce(op_, buffer_.dtype, dst + first_byte, src, elements);
                    });
  }

  std::span<std::byte> bytes(Range range) const {
    return {buffer_.bytes + range.begin * element_bytes_,
            static_cast<std::size_t>(range.size() * element_bytes_)};
  }

  const TypedBuffer buffer_;
  const ReduceOp op_;
  const int divisor_;
  const std::int64_t element_bytes_;
  Rounds rounds_;
  std::vector<std::byte> scratch_;
};

const RegisterAllreduce halving_doubling("halving_doubling", halving_doubling_allreduce);

}  // namespace

std::shared_ptr<Collective> halving_doubling_allreduce(const AlgorithmContext& context,
                                                       const TypedBuffer& buffer, ReduceOp op) {
  check_reducible(op, buffer.dtype);
  return std::make_shared<HalvingDoubling>(context, buffer, op);
}

}  // namespace kolo
