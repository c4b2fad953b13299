#include <kolo/collectives/algorithms/halving_doubling.h>

#include <vector>

#include <kolo/collectives/algorithms/allreduce_registry.h>
#include <kolo/collectives/algorithms/rounds.h>
#include <kolo/collectives/reduce/reduce.h>

namespace kolo {
namespace {

class HalvingDoubling final : public Collective {
 public:
  HalvingDoubling(const AlgorithmContext& context, const TypedBuffer& buffer, ReduceOp op)
      : buffer_(buffer),
        op_(op),
        divisor_(op == ReduceOp::average ? context.divisor() : 1),
        element_bytes_(static_cast<std::int64_t>(size_of(buffer.dtype))),
        rounds_(context.network, context.chunk_bytes) {
    const int rank = context.network.rank(), ranks = context.network.size();
    const ElementRange all{0, buffer.elements};
    const std::int64_t received = takes_folded(rank, ranks) ? all.size() : (all.size() + 1) / 2;
    scratch_.resize(static_cast<std::size_t>(received * element_bytes_));
    const auto take = [&](int from) {
      receive_and_reduce(from, all, /*is_last=*/false);
      rounds_.end_round();
    };
    fold_around(rounds_, rank, ranks, bytes(all), take,
                [&](int power) { halve_and_double(rank, power, all); });
  }

  void start() override { rounds_.start(); }
  Progress progress() override { return rounds_.progress(); }

 private:
  void halve_and_double(int rank, int power, ElementRange range) {
    std::vector<Halves> halves;
    for (int distance = 1; distance < power; distance *= 2) {
      halves.push_back(halve(range, rank, distance));
      range = halves.back().kept;
      rounds_.send(rank ^ distance, bytes(halves.back().given));
      receive_and_reduce(rank ^ distance, range, distance * 2 == power);
      rounds_.end_round();
    }
    add_doubling(rounds_, rank, halves, [this](ElementRange part) { return bytes(part); });
  }

  void receive_and_reduce(int from, ElementRange range, bool is_last) {
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

  std::span<std::byte> bytes(ElementRange range) const {
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
