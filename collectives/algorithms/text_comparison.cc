#include <kolo/collectives/algorithms/text_comparison.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <span>

#include <kolo/collectives/algorithms/tree.h>

namespace kolo {

TextComparison::TextComparison(PointToPoint& network, const Topology& topology, const std::string& text) {
  const XXH128_hash_t hash = XXH3_128bits(text.data(), text.size());
  const auto high = static_cast<std::int64_t>(hash.high64), low = static_cast<std::int64_t>(hash.low64);
  numbers_ = {high, low, ~high, ~low};
  reduction_ = tree_allreduce({.network = network, .topology = topology},
                              TypedBuffer::of(std::span<std::int64_t>(numbers_)), ReduceOp::min);
}

bool TextComparison::is_same() const { return numbers_[0] == ~numbers_[2] && numbers_[1] == ~numbers_[3]; }

}  // namespace kolo
