#include <kolo/models/learnt_samples.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include <kolo/models/chance_twins.h>
#include <kolo/models/data_splits.h>

namespace kolo::models::detail {
namespace {

// A mark's first bits say whether it is one of the kept ones. Those of pictures are made of the file's
// length, so that a file that is not kept need not be opened.
constexpr int kContentBits = 48;
constexpr std::uint64_t kMostOneOf = std::uint64_t{1} << (64 - kContentBits),
                        kContent = (~std::uint64_t{0}) >> (64 - kContentBits);
constexpr std::size_t kMostRows = std::size_t{1} << 22, kMostPictures = std::size_t{1} << 17;

std::uint64_t mixed(std::uint64_t digest) {
  digest = (digest ^ (digest >> 32)) * 0x9e3779b97f4a7c15;
  return digest ^ (digest >> 29);
}

std::uint64_t first_of(std::uint64_t mark) { return mark >> kContentBits; }
bool is_one(std::uint64_t mark, std::uint64_t one_of) { return first_of(mark) % one_of == 0; }

// Of a picture a mark with the same first bits.
std::uint64_t of_length(const SampleContents& contents, std::int64_t place) {
  return mixed(contents.bytes(place) + 1);
}

// Of a sample, as far as it is among the kept ones; of a picture, as far as its first bits are wanted.
std::optional<std::uint64_t> mark_of(const SampleContents& contents, std::int64_t place, std::uint64_t one_of,
                                     const std::vector<bool>& firsts) {
  if (!contents.part) {
    const std::uint64_t mark = mixed(contents.digest(place));
    return is_one(mark, one_of) ? std::optional(mark) : std::nullopt;
  }
  const std::uint64_t length = of_length(contents, place);
  if (!is_one(length, one_of) || !firsts[first_of(length)]) return std::nullopt;
  return (length & ~kContent) | (mixed(contents.part(place)) & kContent);
}

void keep_some(LearntSamples& learnt, std::size_t most) {
  const auto count = [&] {
    return static_cast<std::size_t>(std::count_if(learnt.marks.begin(), learnt.marks.end(),
                                                  [&](auto one) { return is_one(one, learnt.one_of); }));
  };
  while (learnt.one_of < kMostOneOf && count() > most) learnt.one_of *= 2;
  std::erase_if(learnt.marks, [&](auto one) { return !is_one(one, learnt.one_of); });
}

// As a text's pieces say: those that are found alone stand in any text.
double share_in_runs(const std::vector<bool>& found, std::int64_t least_run) {
  std::int64_t in_runs = 0, run = 0;
  const auto end_run = [&] {
    in_runs += run >= least_run ? run : 0;
    run = 0;
  };
  for (const bool one : found)
    if (one) ++run;
    else end_run();
  end_run();
  return found.empty() ? 0 : static_cast<double>(in_runs) / static_cast<double>(found.size());
}

}  // namespace

bool can_be_found(const SampleContents& contents) {
  return !contents.pieces || contents.pieces->count >= contents.pieces->least_run;
}

LearntSamples learnt_samples(std::span<const std::int64_t> drawn, const SampleContents& contents,
                             const SampleContents* asked) {
  if (contents.pieces) return learnt_samples(contents.drawn_pieces, *contents.pieces);
  const std::vector<std::int64_t> places = others_than({drawn.begin(), drawn.end()}, contents.count);
  const std::size_t most = contents.part ? kMostPictures : kMostRows;
  LearntSamples learnt;
  while (learnt.one_of < kMostOneOf && places.size() / learnt.one_of > most) learnt.one_of *= 2;
  std::vector<bool> firsts(kMostOneOf, asked == nullptr);
  if (asked != nullptr && asked->part)
    for (std::int64_t place = 0; place < asked->count; ++place)
      firsts[first_of(of_length(*asked, place))] = true;
  for (const std::int64_t place : places)
    if (const auto mark = mark_of(contents, place, learnt.one_of, firsts)) learnt.marks.push_back(*mark);
  std::sort(learnt.marks.begin(), learnt.marks.end());
  learnt.marks.erase(std::unique(learnt.marks.begin(), learnt.marks.end()), learnt.marks.end());
  keep_some(learnt, most);
  // Passages of a text do not coincide.
  if (contents.least_run == 1) learnt.chance = chance_of_twin(contents, std::ssize(places));
  return learnt;
}

std::shared_ptr<const LearntSamples> joined(const std::shared_ptr<const LearntSamples>& a,
                                            const std::shared_ptr<const LearntSamples>& b) {
  if (!a || !b) return a ? a : b;
  LearntSamples both{.marks = {}, .one_of = std::max(a->one_of, b->one_of)};
  std::set_union(a->marks.begin(), a->marks.end(), b->marks.begin(), b->marks.end(),
                 std::back_inserter(both.marks));
  const auto kept_of = [&](const std::vector<std::uint64_t>& marks) {
    return static_cast<double>(
        std::count_if(marks.begin(), marks.end(), [&](auto one) { return is_one(one, both.one_of); }));
  };
  // Those that are new add their part of the chance.
  const double of_a = kept_of(a->marks), of_b = kept_of(b->marks), of_both = kept_of(both.marks);
  both.chance = std::min(1.0, std::max({a->chance, b->chance,
                                        a->chance + (of_b == 0 ? 0 : b->chance * (of_both - of_a) / of_b)}));
  keep_some(both, kMostRows);
  return std::make_shared<const LearntSamples>(std::move(both));
}

LearntCount learnt_among(const LearntSamples& learnt, std::span<const std::int64_t> places,
                         const SampleContents& contents) {
  constexpr std::int64_t kFew = 3;
  constexpr double kHardlyAny = 1e-3;  // of a text
  std::vector<bool> firsts(kMostOneOf);
  for (const std::uint64_t mark : learnt.marks) firsts[first_of(mark)] = true;
  std::int64_t asked = 0, count = 0;
  std::vector<bool> found;
  for (const std::int64_t place : places) {
    const auto mark = mark_of(contents, place, learnt.one_of, firsts);
    const bool is_found = mark && firsts[first_of(*mark)] &&
                          std::binary_search(learnt.marks.begin(), learnt.marks.end(), *mark);
    asked += mark ? 1 : 0;
    count += is_found ? 1 : 0;
    if (contents.least_run > 1 && mark) found.push_back(is_found);
  }
  if (contents.least_run > 1) {
    const double share = share_in_runs(found, contents.least_run);
    return share < kHardlyAny ? LearntCount()
                              : LearntCount{.samples = count, .share = share, .is_estimate = true};
  }
  const std::int64_t all = std::ssize(places);
  if (learnt.one_of == 1) asked = all;  // those that are not read are none of them
  if (count < std::min(kFew, all) || count == 0) return {};
  const auto is_beyond = [&](double chance) {
    return is_beyond_chance(static_cast<double>(count), static_cast<double>(asked), chance);
  };
  const auto among = static_cast<std::int64_t>(learnt.marks.size() * learnt.one_of);
  if (!is_beyond(learnt.chance) || !is_beyond(chance_of_asked(contents, among))) return {};
  if (learnt.one_of == 1) return {.samples = count};
  // Of pictures those of other lengths were not asked for, and they are none of them.
  const double each = contents.part ? static_cast<double>(learnt.one_of)
                                    : static_cast<double>(all) / static_cast<double>(asked);
  return {.samples = std::clamp(std::int64_t{std::llround(static_cast<double>(count) * each)}, count, all),
          .is_estimate = true};
}

LearntCount learnt_among(const LearntSamples& learnt, const SampleContents& contents) {
  const SampleContents& asked = contents.pieces ? *contents.pieces : contents;
  std::vector<std::int64_t> all(static_cast<std::size_t>(asked.count));
  std::iota(all.begin(), all.end(), 0);
  return learnt_among(learnt, all, asked);
}

}  // namespace kolo::models::detail
