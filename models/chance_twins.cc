#include <kolo/models/chance_twins.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <numeric>
#include <set>
#include <span>
#include <utility>

namespace kolo::models::detail {
namespace {

// More rows that are alike are no copies, if there are few such groups: a sensor that is off writes one.
// Whoever copies the rows of a rare class makes many.
constexpr std::ptrdiff_t kMostCopies = 10, kMostOfSensors = 3;

using Sorted = std::vector<std::pair<std::uint64_t, std::int64_t>>;  // digests and places

Sorted sorted_places(const std::vector<std::int64_t>& places, const SampleContents& contents) {
  Sorted sorted;
  sorted.reserve(places.size());
  for (const std::int64_t place : places) sorted.emplace_back(contents.digest(place), place);
  std::sort(sorted.begin(), sorted.end());
  return sorted;
}

// Calls `take(begin, end)` with each group of rows that are alike.
template <typename Take>
void for_each_group(const Sorted& sorted, const Take& take) {
  for (auto begin = sorted.begin(), end = begin; begin != sorted.end(); begin = end) {
    end = std::find_if(begin, sorted.end(), [&](const auto& one) { return one.first != begin->first; });
    take(begin, end);
  }
}

// Calls `take(rows, column)` with each column; of many columns with some.
template <typename Take>
void for_each_column(const SampleContents& contents, const Take& take) {
  constexpr std::int64_t kMostColumns = 128;
  for (const Tensor& rows : contents.numbers) {
    const std::int64_t each = rows.elements() / rows.shape().dim(0), taken = std::min(each, kMostColumns);
    for (std::int64_t i = 0; i < taken; ++i) take(rows, i * each / taken);
  }
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

// Of all pairs those that differ by so much at most.
double share_of_pairs(std::vector<float> numbers, float most_apart) {
  std::sort(numbers.begin(), numbers.end());
  double pairs = 0;
  for (std::size_t i = 0, end = 0; i < numbers.size(); ++i) {
    while (end < numbers.size() && numbers[end] - numbers[i] <= most_apart) ++end;
    pairs += static_cast<double>(end - i - 1);
  }
  const auto count = static_cast<double>(numbers.size());
  return pairs / (count * (count - 1) / 2);
}

// Whether some rows differ from each other about as much as others do. A column counts by how rarely two of
// the others have the same there: the rows of idle machines differ in the machine alone.
bool differ_as_others(const std::vector<std::int64_t>& some, const std::vector<std::int64_t>& others,
                      const SampleContents& contents) {
  constexpr double kAboutAsMuch = 0.6;
  const double least_share = 1 / static_cast<double>(others.size());
  double of_some = 0, of_others = 0;
  for_each_column(contents, [&](const Tensor& rows, std::int64_t column) {
    const double alike = share_of_pairs(column_of(rows, column, others), 0);
    const double weight = -std::log(std::max(alike, least_share));
    of_some += weight * (1 - share_of_pairs(column_of(rows, column, some), 0));
    of_others += weight * (1 - alike);
  });
  return of_some > kAboutAsMuch * of_others;
}

bool are_large_groups_copies(const Sorted& sorted, const SampleContents& contents) {
  constexpr std::size_t kMostRows = 8192;
  std::vector<std::int64_t> large, others;
  for_each_group(sorted, [&](auto begin, auto end) {
    std::vector<std::int64_t>& places = end - begin > kMostCopies ? large : others;
    if (places.size() < kMostRows) places.push_back(begin->second);  // in the order of digests, from all over
  });
  if (std::ssize(large) <= kMostOfSensors) return false;
  return contents.numbers.empty() || others.size() < 2 || differ_as_others(large, others, contents);
}

// One column's numbers of some rows, so that those next to each other differ by 1 at most: of few different
// ones these follow one another, of others the least difference is a step.
struct Steps {
  std::vector<float> of_rows;
  double near = 1;  // share of pairs next to each other
};

constexpr float kNear = 1.5;
// So many are near or alike now and then: the least difference of a column is a step.
constexpr double kFewPairs = 2;

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
  steps.near = share_of_pairs(steps.of_rows, kNear);
  return steps;
}

// Of some rows from all over that are not alike; of many columns some.
std::vector<Steps> steps_of(const SampleContents& contents) {
  constexpr std::int64_t kMostRows = 8192;
  const std::int64_t most = std::min(contents.count, kMostRows);
  std::set<std::uint64_t> known;
  std::vector<std::int64_t> places;
  for (std::int64_t i = 0; i < most; ++i)
    if (const std::int64_t place = i * contents.count / most; known.insert(contents.digest(place)).second)
      places.push_back(place);
  std::vector<Steps> columns;
  if (places.size() < 2) return columns;
  for_each_column(contents, [&](const Tensor& rows, std::int64_t column) {
    columns.push_back(steps_of(column_of(rows, column, places)));
  });
  std::sort(columns.begin(), columns.end(), [](const Steps& a, const Steps& b) { return a.near < b.near; });
  return columns;
}

// Pairs of rows that are not alike.
struct Pairs {
  double near = 0;  // next to each other in every column; no more than asked for
  double all = 0;   // 0: nobody knows
  // How likely a row is alike one of `among`, if so many of the pairs were.
  double chance(double alike, std::int64_t among) const {
    return std::min(1.0, alike * static_cast<double>(among) / all);
  }
};

// Where rows coincide by chance, others that are not alike are next to each other in every column, one year
// older and of the same town; copies have no such rows around them. Independent columns would tell more, but
// columns depend on each other.
Pairs pairs_of(const SampleContents& contents, std::int64_t among) {
  const std::vector<Steps> columns = steps_of(contents);
  if (columns.empty()) return {};
  const std::vector<float>& first = columns.front().of_rows;
  std::vector<std::size_t> order(first.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return first[a] < first[b]; });
  const auto are_near = [&](std::size_t a, std::size_t b) {
    return std::all_of(columns.begin() + 1, columns.end(), [&](const Steps& column) {
      return std::abs(column.of_rows[a] - column.of_rows[b]) <= kNear;
    });
  };
  const auto rows = static_cast<double>(order.size());
  Pairs pairs{.all = rows * (rows - 1) / 2};
  for (std::size_t i = 0; i < order.size(); ++i)
    for (std::size_t k = i + 1; k < order.size() && first[order[k]] - first[order[i]] <= kNear; ++k) {
      pairs.near += are_near(order[i], order[k]) ? 1 : 0;
      if (pairs.near > kFewPairs && pairs.chance(pairs.near, among) >= 1) return pairs;
    }
  return pairs;
}

// At most how likely a row is alike one of `among` by chance.
double most_by_chance(const SampleContents& contents, std::int64_t among) {
  const Pairs pairs = pairs_of(contents, among);
  return pairs.all == 0 ? 1 : pairs.chance(pairs.near + 1, among);  // the next pair may be one
}

// How likely a row is alike one of `among` others of its kind.
struct Twins {
  double of_few = 0, of_many = 0;  // in groups of few and of many that are alike
  double groups = 0;               // of few
};

Twins twins_of(const SampleContents& contents, std::int64_t among) {
  std::vector<std::int64_t> all(static_cast<std::size_t>(contents.count));
  std::iota(all.begin(), all.end(), 0);
  const Sorted sorted = sorted_places(all, contents);
  Twins twins;
  if (sorted.size() < 2) return twins;
  const auto count = static_cast<double>(sorted.size());
  const double times = static_cast<double>(among) / (count - 1);
  const double missing = 1 - std::min(1.0, times);
  const bool are_copies = are_large_groups_copies(sorted, contents);
  for_each_group(sorted, [&](auto begin, auto end) {
    const auto alike = static_cast<double>(end - begin);
    if (alike == 1) return;
    const bool is_many = end - begin > kMostCopies && !are_copies;
    (is_many ? twins.of_many : twins.of_few) += alike * (1 - std::pow(missing, alike - 1)) / count;
    twins.groups += is_many ? 0 : 1;
  });
  // Among more than there are here, those that have no twin may find one.
  if (times > 1) twins.of_few = 1 - std::pow(1 - std::min(1.0, twins.of_few), times);
  return twins;
}

// So many may be expected where `found` were found: about what a Poisson distribution exceeds once in twenty
// times; 3 of none.
double at_most(double found) { return found + 2 * std::sqrt(found) + 3; }

}  // namespace

std::vector<std::uint64_t> sorted_digests(const SampleContents& contents) {
  std::vector<std::uint64_t> digests;
  digests.reserve(static_cast<std::size_t>(contents.count));
  for (std::int64_t place = 0; place < contents.count; ++place) digests.push_back(contents.digest(place));
  std::sort(digests.begin(), digests.end());
  return digests;
}

double chance_of_twin(const SampleContents& contents, std::int64_t among) {
  if (contents.bytes || contents.count < 2) return 0;
  const Twins twins = twins_of(contents, among);
  if (twins.of_few > 0)
    return std::min(1.0, twins.of_many + std::min(twins.of_few * at_most(twins.groups) / twins.groups,
                                                  most_by_chance(contents, among)));
  const Pairs pairs = pairs_of(contents, among);
  const double may_be = std::min(at_most(0), pairs.near - kFewPairs);
  return twins.of_many + (may_be > 0 ? pairs.chance(may_be, among) : 0);
}

double chance_of_asked(const SampleContents& asked, std::int64_t among) {
  if (asked.bytes || asked.count < 2) return 0;
  const Twins twins = twins_of(asked, among);
  if (twins.of_few == 0) return twins.of_many;
  const Pairs pairs = pairs_of(asked, among);
  if (pairs.all == 0) return std::min(1.0, twins.of_many + twins.of_few);
  const double by_near = pairs.near > kFewPairs ? pairs.chance(pairs.near, among) : 0;
  return std::min(1.0, twins.of_many + std::min(twins.of_few, by_near));
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
  const Sorted sorted = sorted_places(places, contents);
  std::vector<std::int64_t> alone, copied;
  const bool are_copies = are_large_groups_copies(sorted, contents);
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
