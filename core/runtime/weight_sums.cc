#include <kolo/core/runtime/weight_sums.h>

#define XXH_INLINE_ALL
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <xxhash.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include <kolo/core/base/env.h>
#include <kolo/core/base/json_text.h>

namespace kolo::detail {
namespace {

using nlohmann::json;

struct OfRank {
  int rank;
  WeightSums sums;
};

// Those whose number of variable `i` is not what most have. ranks: ascending.
std::vector<int> ranks_that_differ(const std::vector<OfRank>& ranks, std::size_t i) {
  std::map<std::uint64_t, int> times;
  for (const OfRank& of : ranks) ++times[of.sums[i].second];
  std::uint64_t usual = ranks.at(0).sums[i].second;
  for (const OfRank& of : ranks)
    if (times[of.sums[i].second] > times[usual]) usual = of.sums[i].second;
  std::vector<int> differ;
  for (const OfRank& of : ranks)
    if (of.sums[i].second != usual) differ.push_back(of.rank);
  return differ;
}

}  // namespace

std::int64_t check_drift_steps() { return env_int64("KOLO_CHECK_DRIFT", 100, 0); }

std::uint64_t sum_of_bits(const void* memory, std::size_t bytes, std::uint64_t seed) {
  return XXH3_64bits_withSeed(memory, bytes, seed);
}

std::uint16_t combined(const WeightSums& sums) {
  std::vector<std::uint64_t> numbers;
  for (const auto& [name, sum] : sums) numbers.push_back(sum);
  return static_cast<std::uint16_t>(XXH3_64bits(numbers.data(), numbers.size() * sizeof(std::uint64_t)));
}

std::string text_of(const WeightSums& sums) { return json_text(json(sums)); }

std::optional<std::string> weights_that_differ(std::span<const std::string> texts, std::span<const int> ranks,
                                               std::int64_t first, std::int64_t last) {
  std::vector<OfRank> all;
  for (std::size_t i = 0; i < texts.size(); ++i)
    all.push_back({ranks.empty() ? static_cast<int>(i) : ranks[i], json::parse(texts[i]).get<WeightSums>()});
  std::sort(all.begin(), all.end(), [](const OfRank& a, const OfRank& b) { return a.rank < b.rank; });
  std::size_t variables = all.at(0).sums.size();
  for (const OfRank& of : all) variables = std::min(variables, of.sums.size());
  std::string found;
  std::size_t differ = 0;
  for (std::size_t i = 0; i < variables; ++i) {
    const std::vector<int> wrong = ranks_that_differ(all, i);
    if (wrong.empty()) continue;
    if (++differ == 1)
      found = fmt::format("weights differ: \"{}\" on rank{} {} since a step in {}..{}", all[0].sums[i].first,
                          wrong.size() > 1 ? "s" : "", fmt::join(wrong, ", "), first, last);
  }
  if (differ == 0) return {};
  return fmt::format(
      "{} ({} of {} variables); broadcast them from one rank, and look for what changes them on some ranks "
      "alone",
      found, differ, variables);
}

}  // namespace kolo::detail
