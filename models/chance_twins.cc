#include <kolo/models/chance_twins.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <set>
#include <span>
#include <utility>

namespace kolo::models::detail {
namespace {

// More rows that are alike are no copies, if there are few such groups: a sensor that is off writes one.
// Whoever copies the rows of a rare class makes many.
constexpr std::ptrdiff_t kMostCopies = 10, kMostOfSensors = 3;

std::uint64_t digest_of(std::uint64_t digest) { return digest; }
std::uint64_t digest_of(const std::pair<std::uint64_t, std::int64_t>& of_place) { return of_place.first; }

// Calls `take(begin, end)` with each group of rows that are alike.
template <typename Sorted, typename Take>
void for_each_group(const Sorted& sorted, const Take& take) {
  for (auto begin = sorted.begin(), end = begin; begin != sorted.end(); begin = end) {
    end = std::find_if(begin, sorted.end(),
                       [&](const auto& one) { return digest_of(one) != digest_of(*begin); });
    take(begin, end);
  }
}

template <typename Sorted>
bool are_large_groups_copies(const Sorted& sorted) {
  std::ptrdiff_t large = 0;
  for_each_group(sorted, [&](auto begin, auto end) { large += end - begin > kMostCopies ? 1 : 0; });
  return large > kMostOfSensors;
}

// One column's numbers of some rows, so that those next to each other differ by 1 at most: of few different
// ones these follow one another, of others the least difference is a step.
struct Steps {
  std::vector<float> of_rows;
  double near = 1;  // share of pairs next to each other
};

constexpr float kNear = 1.5;

double share_of_near(std::vector<float> sorted) {
  std::sort(sorted.begin(), sorted.end());
  double pairs = 0;
  for (std::size_t i = 0, end = 0; i < sorted.size(); ++i) {
    while (end < sorted.size() && sorted[end] - sorted[i] <= kNear) ++end;
    pairs += static_cast<double>(end - i - 1);
  }
  const auto count = static_cast<double>(sorted.size());
  return pairs / (count * (count - 1) / 2);
}

Steps steps_of(std::vector<float> numbers) {
  constexpr std::ptrdiff_t kFew = 4;      // times as many rows as different numbers
  constexpr float kLeastOfRange = 1e-6F;  // less than this is rounding
  std::vector<float> different = numbers;
  std::sort(different.begin(), different.end());
  different.erase(std::unique(different.begin(), different.end()), different.end());
  const float least = different.front(), range = different.back() - least;
  const bool are_few = kFew * std::ssize(different) <= std::ssize(numbers);
  float step = range;
  for (std::size_t i = 1; i < different.size(); ++i) step = std::min(step, different[i] - different[i - 1]);
  step = std::max(step, kLeastOfRange * range);
  for (float& number : numbers)
    if (are_few)
      number = static_cast<float>(std::lower_bound(different.begin(), different.end(), number) -
                                  different.begin());
    else number = range == 0 ? 0 : (number - least) / step;
  Steps steps{.of_rows = std::move(numbers)};
  steps.near = share_of_near(steps.of_rows);
  return steps;
}

std::vector<float> column_of(const Tensor& rows, std::int64_t column,
                             const std::vector<std::int64_t>& places) {
  const std::int64_t each = rows.elements() / rows.shape().dim(0);
  std::vector<float> numbers;
  for (const std::int64_t place : places)
    numbers.push_back(rows.dtype() == DType::u8
                          ? static_cast<float>(rows.data<std::uint8_t>()[place * each + column])
                          : rows.data<float>()[place * each + column]);
  return numbers;
}

// Of some rows from all over that are not alike; of many columns some.
std::vector<Steps> steps_of(const SampleContents& contents) {
  constexpr std::int64_t kMostRows = 8192, kMostColumns = 128;
  const std::int64_t most = std::min(contents.count, kMostRows);
  std::set<std::uint64_t> known;
  std::vector<std::int64_t> places;
  for (std::int64_t i = 0; i < most; ++i)
    if (const std::int64_t place = i * contents.count / most; known.insert(contents.digest(place)).second)
      places.push_back(place);
  std::vector<Steps> columns;
  for (const Tensor& rows : contents.numbers) {
    const std::int64_t each = rows.elements() / rows.shape().dim(0), taken = std::min(each, kMostColumns);
    for (std::int64_t i = 0; i < taken && places.size() > 1; ++i)
      columns.push_back(steps_of(column_of(rows, i * each / taken, places)));
  }
  std::sort(columns.begin(), columns.end(), [](const Steps& a, const Steps& b) { return a.near < b.near; });
  return columns;
}

// At most how likely a row is alike one of `among` by chance. Where rows coincide, others that are not alike
// are next to each other in every column, one year older and of the same town; copies have no such rows
// around them. Independent columns would tell more, but columns depend on each other.
double most_by_chance(const SampleContents& contents, std::int64_t among) {
  const std::vector<Steps> columns = steps_of(contents);
  if (columns.empty()) return 1;
  const std::vector<float>& first = columns.front().of_rows;
  std::vector<std::size_t> order(first.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return first[a] < first[b]; });
  const auto are_near = [&](std::size_t a, std::size_t b) {
    return std::all_of(columns.begin() + 1, columns.end(), [&](const Steps& column) {
      return std::abs(column.of_rows[a] - column.of_rows[b]) <= kNear;
    });
  };
  const auto rows = static_cast<double>(order.size()), pairs = rows * (rows - 1) / 2;
  const double each = static_cast<double>(among) / pairs;
  double found = 1;  // the next pair may be one
  for (std::size_t i = 0; i < order.size(); ++i)
    for (std::size_t k = i + 1; k < order.size() && first[order[k]] - first[order[i]] <= kNear; ++k) {
      found += are_near(order[i], order[k]) ? 1 : 0;
      if (found * each >= 1) return 1;
    }
  return found * each;
}

}  // namespace

std::vector<std::uint64_t> sorted_digests(const SampleContents& contents) {
  std::vector<std::uint64_t> digests;
  digests.reserve(static_cast<std::size_t>(contents.count));
  for (std::int64_t place = 0; place < contents.count; ++place) digests.push_back(contents.digest(place));
  std::sort(digests.begin(), digests.end());
  return digests;
}

double chance_of_twin(const SampleContents& contents, std::int64_t among) {
  if (contents.bytes) return 0;
  const std::vector<std::uint64_t> sorted = sorted_digests(contents);
  const auto others = static_cast<double>(sorted.size()) - 1;
  if (others < 1) return 0;
  const double missing = 1 - std::min(1.0, static_cast<double>(among) / others);
  double of_few = 0, of_many = 0;
  const bool are_copies = are_large_groups_copies(sorted);
  for_each_group(sorted, [&](auto begin, auto end) {
    const auto alike = static_cast<double>(end - begin);
    const bool is_many = end - begin > kMostCopies && !are_copies;
    if (alike > 1) (is_many ? of_many : of_few) += alike * (1 - std::pow(missing, alike - 1));
  });
  of_few /= others + 1, of_many /= others + 1;
  return of_few == 0 ? of_many : of_many + std::min(of_few, most_by_chance(contents, among));
}

bool is_beyond_chance(double found, double asked, double chance) {
  constexpr double kDeviations = 4;
  const double by_chance = asked * chance;
  return found > by_chance + kDeviations * std::sqrt(by_chance * (1 - chance));
}

std::vector<std::int64_t> telling_ones(const std::vector<std::int64_t>& places,
                                       const SampleContents& contents) {
  constexpr double kHardlyAny = 0.1;
  if (contents.bytes) return places;
  std::vector<std::pair<std::uint64_t, std::int64_t>> sorted;
  for (const std::int64_t place : places) sorted.emplace_back(contents.digest(place), place);
  std::sort(sorted.begin(), sorted.end());
  std::vector<std::int64_t> alone, copied;
  const bool are_copies = are_large_groups_copies(sorted);
  for_each_group(sorted, [&](auto begin, auto end) {
    if (end - begin == 1) alone.push_back(begin->second);
    else if (end - begin <= kMostCopies || are_copies) copied.push_back(begin->second);
  });
  if (2 * alone.size() <= places.size()) {
    if (copied.empty() || most_by_chance(contents, contents.count) > kHardlyAny) return {};
    alone.insert(alone.end(), copied.begin(), copied.end());
  }
  std::sort(alone.begin(), alone.end());
  return alone;
}

}  // namespace kolo::models::detail
