#include <kolo/collectives/algorithms/halving_doubling.h>

#include <vector>

#include <kolo/collectives/algorithms/allreduce_registry.h>
#include <kolo/collectives/algorithms/partial_results.h>
#include <kolo/collectives/algorithms/rounds.h>

namespace kolo {
namespace {

class HalvingDoubling final : public Collective {
 public:
  HalvingDoubling(const AlgorithmContext& context, const TypedBuffer& buffer, ReduceOp op)
      : buffer_(buffer),
        partial_(context, buffer, op),
        element_bytes_(static_cast<std::int64_t>(size_of(buffer.dtype))),
        rounds_(context.network, context.chunk_bytes) {
    const int rank = context.network.rank(), ranks = context.network.size();
    const Section all{0, buffer.elements};
    const std::int64_t received = takes_folded(rank, ranks) ? all.size() : (all.size() + 1) / 2;
    scratch_.resize(static_cast<std::size_t>(received * element_bytes_));
    const auto take = [&](int from) {
      receive(from, all, [this](std::byte* dst, const std::byte* src, std::int64_t elements) {
        partial_.combine(dst, 1, src, 1, elements);
      });
      rounds_.end_round();
    };
    fold_around(rounds_, rank, ranks, bytes(all), take,
                [&](int power) { halve_and_double(rank, ranks, power, all); });
  }

  void start() override { rounds_.start(); }
  Progress progress() override { return rounds_.progress(); }

 private:
  void halve_and_double(int rank, int ranks, int power, Section range) {
    std::vector<Halves> halves;
    for (int distance = 1; distance < power; distance *= 2) {
      const int partner = rank ^ distance;
      halves.push_back(halve(range, rank, distance));
      range = halves.back().kept;
      rounds_.send(partner, bytes(halves.back().given));
      receive(partner, range,
              [this, own = ranks_combined(rank, distance, ranks),
               other = ranks_combined(partner, distance, ranks),
               is_last = distance * 2 == power](std::byte* dst, const std::byte* src, std::int64_t elements) {
                if (is_last) partial_.finish(dst, own, src, other, elements);
                else partial_.combine(dst, own, src, other, elements);
              });
      rounds_.end_round();
    }
    add_doubling(rounds_, rank, halves, [this](Section part) { return bytes(part); });
  }

  // combine(own elements, those that came, how many) for each part of the range.
  template <class Combine>
  void receive(int from, Section range, const Combine& combine) {
    const auto own = bytes(range);
    rounds_.receive(from, std::span(scratch_).first(own.size()),
                    [this, combine, own](std::int64_t first_byte, std::int64_t size) {
                      combine(own.data() + first_byte, scratch_.data() + first_byte, size / element_bytes_);
                    });
  }

  std::span<std::byte> bytes(Section range) const {
    return {buffer_.bytes + range.begin * element_bytes_,
            static_cast<std::size_t>(range.size() * element_bytes_)};
  }

  const TypedBuffer buffer_;
  const PartialResults partial_;
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
