#include <kolo/collectives/algorithms/tree.h>

#include <algorithm>

#include <kolo/collectives/algorithms/allreduce_registry.h>
#include <kolo/collectives/algorithms/partial_results.h>
#include <kolo/collectives/algorithms/rounds.h>
#include <kolo/collectives/reduce/reduce.h>

namespace kolo {
namespace {

// Itself included, in the binomial tree.
int ranks_below(int rank, int ranks) {
  const int distance = rank == 0 ? ranks : rank & -rank;
  return std::min(distance, ranks - rank);
}

class TreeAllreduce final : public Collective {
 public:
  TreeAllreduce(const AlgorithmContext& context, const TypedBuffer& buffer, ReduceOp op)
      : buffer_(buffer), op_(op), rounds_(context.network, context.chunk_bytes) {
    const int rank = context.network.rank(), ranks = context.network.size();
    const TreePlace place = binomial_tree(rank, ranks);
    const bool is_root = place.parent < 0;
    const PartialResults partial(context, buffer, op);
    divisor_ = is_root ? partial.divisor() : partial.scale(ranks_below(rank, ranks));
    is_wide_ = !place.children.empty() && size_of(buffer.dtype) == 2;
    const std::span<std::byte> all{buffer.bytes,
                                   static_cast<std::size_t>(buffer.elements) * size_of(buffer.dtype)};
    scratch_.resize(all.size() * place.children.size());
    if (is_wide_) sum_.resize(static_cast<std::size_t>(2 * buffer.elements));
    for (std::size_t child = 0; child < place.children.size(); ++child) {
      const auto part = std::span(scratch_).subspan(child * all.size(), all.size());
      const double scale = partial.scale(ranks_below(place.children[child], ranks));
      rounds_.receive(place.children[child], part,
                      [this, part, scale](std::int64_t first_byte, std::int64_t bytes) {
                        add(part.data(), scale, first_byte, bytes);
                      });
    }
    rounds_.end_round([this] { finish_sum(); });
    if (!is_root) {
      rounds_.send(place.parent, all);
      rounds_.receive(place.parent, all);  // comes after the parent has read all that was sent
      rounds_.end_round();
    }
    for (const int child : place.children) rounds_.send(child, all);
    rounds_.end_round();
  }

  void start() override {
    if (is_wide_) widen(buffer_.dtype, sum_.data(), buffer_.bytes, buffer_.elements);
    rounds_.start();
  }
  Progress progress() override { return rounds_.progress(); }

 private:
  void add(const std::byte* partial, double scale, std::int64_t first_byte, std::int64_t bytes) {
    const std::int64_t first = first_byte / element_bytes(), elements = bytes / element_bytes();
    if (!is_wide_)
      return reduce(op_, buffer_.dtype, buffer_.bytes + first_byte, partial + first_byte, elements);
    float* summand = sum_.data() + buffer_.elements;
    widen(buffer_.dtype, summand, partial + first_byte, elements);
    if (scale != 1) multiply(DType::f32, summand, elements, scale);
    reduce(op_, DType::f32, sum_.data() + first, summand, elements);
  }

  void finish_sum() {
    if (is_wide_) narrow(buffer_.dtype, buffer_.bytes, sum_.data(), buffer_.elements, divisor_);
    else if (divisor_ != 1) divide(buffer_.dtype, buffer_.bytes, buffer_.elements, divisor_);
  }

  std::int64_t element_bytes() const { return static_cast<std::int64_t>(size_of(buffer_.dtype)); }

  const TypedBuffer buffer_;
  const ReduceOp op_;
  double divisor_ = 1;
  bool is_wide_ = false;  // sums 16-bit elements in f32
  Rounds rounds_;
  std::vector<std::byte> scratch_;  // a buffer for each child
  std::vector<float> sum_;          // and behind it what is being added
};

const RegisterAllreduce tree("tree", tree_allreduce);

}  // namespace

TreePlace binomial_tree(int rank, int ranks) {
  TreePlace place;
  int distance = 1;
  for (; distance < ranks && (rank & distance) == 0; distance *= 2)
    if (rank + distance < ranks) place.children.push_back(rank + distance);
  if (rank > 0) place.parent = rank - distance;
  return place;
}

std::shared_ptr<Collective> tree_allreduce(const AlgorithmContext& context, const TypedBuffer& buffer,
                                           ReduceOp op) {
  check_reducible(op, buffer.dtype);
  return std::make_shared<TreeAllreduce>(context, buffer, op);
}

}  // namespace kolo
