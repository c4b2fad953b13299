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
#include <kolo/models/learnt_samples.h>

namespace kolo::models::detail {
namespace {

// "" where hardly any are.
std::string warning_of_shared(const SampleContents& train, const std::string& train_name,
                              const SampleContents& test, const std::string& test_name) {
  if (train.count == 0 || test.count == 0) return "";
  const LearntCount shared = learnt_among(learnt_samples({}, train, &test), test);
  if (shared.samples == 0) return "";
  return fmt::format(
      "{}: {}{} of {} samples for testing stand in {}, too: their accuracy is not that of new samples",
      test_name, shared.is_estimate ? "about " : "", shared.samples, test.count, train_name);
}

std::string note_of(std::int64_t shared) {
  return fmt::format("{} of these stand in the training, too", shared);
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
             ? note_of(count)
             : "";
}

std::string note_of_copies(const std::vector<std::int64_t>& drawn, const SampleContents& contents,
                           const SampleContents& of_drawn) {
  if (drawn.empty()) return "";
  const LearntCount shared = learnt_among(learnt_samples(drawn, contents, &of_drawn), of_drawn);
  return shared.samples == 0 ? "" : note_of(shared.samples);
}

}  // namespace kolo::models::detail
