#include <kolo/collectives/progress/rank_set.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstddef>

namespace kolo::detail {
namespace {

// So many ranks are told one by one.
constexpr int kFewRanks = 8;
constexpr std::size_t kRangesInText = 8;

}  // namespace

// Gaps and lengths in turn.
void write_ranks(ByteWriter& to, const RankSet& set) {
  std::vector<std::size_t> bounds;
  for (std::size_t begin = set.find_first(), end = 0; begin != RankSet::npos; begin = set.find_next(end)) {
    for (end = begin; end + 1 < set.size() && set.test(end + 1);) ++end;
    bounds.insert(bounds.end(), {begin, end + 1});
  }
  to.number(static_cast<std::int64_t>(bounds.size()));
  std::size_t last = 0;
  for (const std::size_t bound : bounds) {
    to.number(static_cast<std::int64_t>(bound - last));
    last = bound;
  }
}

RankSet read_ranks(ByteReader& from, int size) {
  RankSet set(static_cast<std::size_t>(size));
  std::int64_t place = 0;
  for (auto bounds = from.number(); bounds > 0; bounds -= 2) {
    const auto begin = place + from.number();
    place = begin + from.number();
    if (begin < 0 || place < begin || place > size)
      throw InternalError("a message names ranks beyond {}", size);
    for (auto rank = begin; rank < place; ++rank) set.set(static_cast<std::size_t>(rank));
  }
  return set;
}

std::string text_of_ranks(const std::vector<int>& ranks, int all, std::span<const std::string> hosts) {
  if (all <= kFewRanks) return fmt::format("{}", fmt::join(ranks, ","));
  const auto host = [&](int rank) {
    return hosts.empty() ? "" : " on " + hosts[static_cast<std::size_t>(rank)];
  };
  std::vector<std::string> ranges;
  std::size_t next = 0;
  while (next < ranks.size() && ranges.size() < kRangesInText) {
    const std::size_t first = next++;
    while (next < ranks.size() && ranks[next] == ranks[next - 1] + 1 &&
           host(ranks[next]) == host(ranks[first]))
      ++next;
    ranges.push_back(next == first + 1
                         ? fmt::format("{}{}", ranks[first], host(ranks[first]))
                         : fmt::format("{}-{}{}", ranks[first], ranks[next - 1], host(ranks[first])));
  }
  const std::size_t rest = ranks.size() - next;
  return fmt::format("{}{}", fmt::join(ranges, ","), rest > 0 ? fmt::format(" and {} more", rest) : "");
}

}  // namespace kolo::detail
