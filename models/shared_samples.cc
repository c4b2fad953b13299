#include <kolo/models/shared_samples.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <set>
#include <utility>

#include <kolo/models/chance_twins.h>
#include <kolo/models/data_splits.h>

namespace kolo::models::detail {
namespace {

// At most `most` of them, from all over.
std::vector<std::int64_t> some_of(const std::vector<std::int64_t>& places, std::size_t most) {
  if (places.size() <= most) return places;
  std::vector<std::int64_t> some;
  for (std::size_t i = 0; i < most; ++i) some.push_back(places[i * places.size() / most]);
  return some;
}

std::string text_of(const char* about, std::int64_t shared, std::int64_t count, const std::string& test_name,
                    const std::string& train_name) {
  if (100 * shared < count) return "";
  return fmt::format(
      "{}: {}{} of {} samples for testing stand in {}, too: their accuracy is not that of new samples",
      test_name, about, shared, count, train_name);
}

// A few are read, and of the training's those that may be the same: files of as many bytes.
std::string of_pictures(const SampleContents& train, const std::string& train_name,
                        const SampleContents& test, const std::string& test_name) {
  constexpr std::size_t kMostAsked = 64, kMostRead = 1000, kFew = 2;
  const std::vector<std::int64_t> asked = some_of(others_than({}, test.count), kMostAsked);
  std::set<std::uint64_t> lengths, learnt;
  for (const std::int64_t place : asked) lengths.insert(test.bytes(place));
  std::vector<std::int64_t> alike;
  for (std::int64_t place = 0; place < train.count; ++place)
    if (lengths.contains(train.bytes(place))) alike.push_back(place);
  const std::vector<std::int64_t> read = some_of(alike, kMostRead);
  for (const std::int64_t place : read) learnt.insert(train.digest(place));
  if (learnt.empty()) return "";
  const auto found = static_cast<std::size_t>(std::count_if(
      asked.begin(), asked.end(), [&](std::int64_t place) { return learnt.contains(test.digest(place)); }));
  if (found < std::min(kFew, asked.size())) return "";
  const bool are_all = asked.size() == static_cast<std::size_t>(test.count) && read.size() == alike.size();
  const double each = static_cast<double>(test.count) / static_cast<double>(asked.size()) *
                      static_cast<double>(alike.size()) / static_cast<double>(read.size());
  return text_of(are_all ? "" : "about ",
                 std::min(std::int64_t{std::llround(static_cast<double>(found) * each)}, test.count),
                 test.count, test_name, train_name);
}

// "" where hardly any are.
std::string warning_of_shared(const SampleContents& train, const std::string& train_name,
                              const SampleContents& test, const std::string& test_name) {
  if (train.count == 0 || test.count == 0) return "";
  if (train.bytes) return of_pictures(train, train_name, test, test_name);
  constexpr std::int64_t kFew = 3;
  const std::vector<std::uint64_t> learnt = sorted_digests(train);
  std::int64_t shared = 0;
  for (std::int64_t row = 0; row < test.count; ++row)
    shared += std::binary_search(learnt.begin(), learnt.end(), test.digest(row)) ? 1 : 0;
  if (shared < std::min(kFew, test.count)) return "";
  if (!is_beyond_chance(static_cast<double>(shared), static_cast<double>(test.count),
                        chance_of_twin(train, train.count)))
    return "";
  return text_of("", shared, test.count, test_name, train_name);
}

}  // namespace

void LearntPart::learn(SampleContents contents, std::string name) {
  learnt_ = std::move(contents);
  name_ = std::move(name);
}

std::vector<std::string> LearntPart::warnings_of(const SampleContents& test, const std::string& name) const {
  std::vector<std::string> warnings;
  const std::string shared = warning_of_shared(learnt_, name_, test, name);
  if (!request_.is_own) warnings.push_back(seen_in_training(request_, {}, test).text);
  else if (shared.empty()) warnings.push_back(learnt_of_part(request_, test));
  warnings.push_back(shared);
  std::erase(warnings, "");
  return warnings;
}

std::function<SampleDigests()> LearntPart::digests() const {
  return learnt_.digest ? digests_later({}, learnt_) : std::function<SampleDigests()>();
}

std::string note_of_shared(const std::vector<std::int64_t>& drawn, const SampleContents& contents) {
  constexpr std::int64_t kFew = 3;
  std::vector<std::uint64_t> of_drawn;
  for (const std::int64_t place : drawn) of_drawn.push_back(contents.digest(place));
  std::sort(of_drawn.begin(), of_drawn.end());
  // Most of a large table's rows are not looked for any further.
  constexpr std::size_t kMarks = std::size_t{1} << 20;
  std::vector<bool> may_be_drawn(kMarks);
  for (const std::uint64_t one : of_drawn) may_be_drawn[one % kMarks] = true;
  std::set<std::uint64_t> shared;
  for (const std::int64_t place : others_than(drawn, contents.count))
    if (const std::uint64_t one = contents.digest(place);
        may_be_drawn[one % kMarks] && std::binary_search(of_drawn.begin(), of_drawn.end(), one))
      shared.insert(one);
  const std::int64_t count = std::count_if(of_drawn.begin(), of_drawn.end(),
                                           [&](std::uint64_t one) { return shared.contains(one); });
  if (count < kFew || 10 * count <= std::ssize(drawn)) return "";
  const double chance = chance_of_twin(contents, contents.count - std::ssize(drawn));
  return is_beyond_chance(static_cast<double>(count), static_cast<double>(drawn.size()), chance)
             ? fmt::format("{} of these stand in the training, too", count)
             : "";
}

}  // namespace kolo::models::detail
