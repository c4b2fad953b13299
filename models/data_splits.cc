#include <kolo/models/data_splits.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <numeric>
#include <optional>
#include <set>

namespace kolo::models::detail {
namespace {

constexpr std::uint64_t kTestingShare = 10;  // one of so many samples is for testing

}  // namespace

std::vector<std::int64_t> drawn_for_testing(std::span<const std::uint64_t> keys, std::uint64_t seed,
                                            std::span<const std::int32_t> labels) {
  std::vector<std::int64_t> drawn;
  if (keys.size() < kTestingShare) return drawn;
  const auto number = [&](std::size_t i) {
    return CounterRandom(seed, RandomPurpose::testing_part, keys[i]).next();
  };
  const auto is_drawn = [&](std::size_t i) { return number(i) % kTestingShare == 0; };
  std::map<std::int32_t, std::size_t> largest;  // of each class, the sample with the largest number
  std::set<std::int32_t> trained;               // classes of which a sample is not drawn
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const auto place = largest.emplace(labels[i], i).first;
    if (number(i) > number(place->second)) place->second = i;
    if (!is_drawn(i)) trained.insert(labels[i]);
  }
  const auto is_largest = [&](std::size_t i) { return !labels.empty() && largest.at(labels[i]) == i; };
  std::optional<std::size_t> least;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const bool stays = is_largest(i) && !trained.contains(labels[i]);
    if (is_drawn(i) && !stays) drawn.push_back(static_cast<std::int64_t>(i));
    if (!is_largest(i) && (!least || number(i) < number(*least))) least = i;
  }
  if (drawn.empty() && least) drawn.push_back(static_cast<std::int64_t>(*least));
  return drawn;
}

std::vector<std::int64_t> others_than(const std::vector<std::int64_t>& drawn, std::int64_t count) {
  std::vector<std::int64_t> all(static_cast<std::size_t>(count)), others;
  std::iota(all.begin(), all.end(), 0);
  std::set_difference(all.begin(), all.end(), drawn.begin(), drawn.end(), std::back_inserter(others));
  return others;
}

}  // namespace kolo::models::detail
