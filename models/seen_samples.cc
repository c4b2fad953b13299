#include <kolo/models/seen_samples.h>

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <numeric>
#include <set>
#include <utility>
#include <vector>

#include <kolo/models/chance_twins.h>
#include <kolo/models/learnt_samples.h>

namespace kolo::models::detail {
namespace {

constexpr std::size_t kMostKept = 64, kFewFound = 3;
using Digests = std::set<std::uint64_t>;

Digests set_of(const std::vector<std::uint64_t>& digests) { return {digests.begin(), digests.end()}; }

// Those of `kept` that are among the samples at these places.
Digests found_among(const Digests& kept, const SampleDigests& trained, std::span<const std::int64_t> places,
                    const SampleContents& contents) {
  const Digests lengths = set_of(trained.bytes);
  Digests found;
  for (const std::int64_t place : places) {
    if (found.size() == kept.size()) break;
    if (contents.bytes && !lengths.contains(contents.bytes(place))) continue;
    if (const std::uint64_t digest = contents.digest(place); kept.contains(digest)) found.insert(digest);
  }
  return found;
}

// Folders of an earlier version keep names of pictures. Rows and pictures are never alike.
bool is_comparable(const SampleDigests& trained, const SampleContents& contents) {
  return !contents.bytes || !trained.bytes.empty() || trained.all != 0;
}

// Of the first `count` rows together.
std::uint64_t digest_of_rows(const SampleContents& contents, std::int64_t count) {
  std::uint64_t digest = kDigestOfNothing;
  for (std::int64_t row = 0; row < count; ++row) {
    const std::uint64_t one = contents.digest(row);
    digest = digest_of_bytes(std::as_bytes(std::span(&one, 1)), digest);
  }
  return digest;
}

// Of what lies where the training's data lay: other samples may have come, and pictures may be gone.
bool is_own_still(const SampleDigests& trained, std::span<const std::int64_t> drawn,
                  const SampleContents& contents) {
  if (trained.all != 0 &&
      (contents.count < trained.samples || digest_of_rows(contents, trained.samples) != trained.all))
    return false;
  const Digests kept = set_of(trained.digests);
  const std::size_t again = found_among(kept, trained, drawn, contents).size();
  const auto has_learnt_drawn = [&] {
    return !found_among(set_of(trained.learnt), trained, drawn, contents).empty();
  };
  // Another seed draws others of the same rows, and the last tenth of a text that has grown is new.
  if (trained.all != 0) return kept.empty() || 2 * again > kept.size() || !has_learnt_drawn();
  if (again == kept.size()) return true;
  return 2 * again > kept.size() && !has_learnt_drawn();
}

bool is_same(const SampleDigests& trained, const DataRequest& request, std::span<const std::int64_t> drawn,
             const SampleContents& contents) {
  if (drawn.empty()) return request.is_own;  // there is nothing else to test
  if (!is_comparable(trained, contents)) return request.is_own;
  if (request.is_own && is_own_still(trained, drawn, contents)) return true;
  if (contents.count != trained.samples) return false;
  // Weights of another folder may have learnt from the same samples, and from others of them.
  std::vector<std::uint64_t> of_drawn;
  for (const std::int64_t place : drawn.first(std::min(drawn.size(), kMostKept)))
    of_drawn.push_back(contents.digest(place));
  if (of_drawn != trained.digests) return false;
  return trained.all == 0 || digest_of_rows(contents, contents.count) == trained.all;
}

struct Estimate {
  std::size_t found = 0, kept = 0;  // of the starts of which some were found
  double samples = 0;               // of the data
  bool has_most = false;            // more than half of what is kept of a start
};

// How many of `count` samples, these, a start of the training has learnt from, those apart that are alike by
// chance.
double learnt_of(const SampleDigests& trained, std::size_t found, std::size_t kept, double chance) {
  const auto of_kept = static_cast<double>(kept);
  if (!is_beyond_chance(static_cast<double>(found), of_kept, chance)) return 0;
  const double share = (static_cast<double>(found) / of_kept - chance) / (1 - chance);
  return share * static_cast<double>(trained.samples - trained.drawn);
}

// Where an earlier version kept digests of drawn ones alone, these stand for the others.
void add_estimate(Estimate& estimate, const SampleDigests& trained, const SampleContents& contents) {
  std::vector<std::int64_t> all(static_cast<std::size_t>(contents.count));
  std::iota(all.begin(), all.end(), 0);
  const bool is_of_earlier_version = trained.learnt.empty() && trained.all == 0;
  const Digests kept = set_of(is_of_earlier_version ? trained.digests : trained.learnt);
  const std::size_t found = found_among(kept, trained, all, contents).size();
  if (found == 0) return;
  const double samples = learnt_of(trained, found, kept.size(), chance_of_twin(contents, contents.count));
  if (samples == 0) return;
  estimate.found += found;
  estimate.kept += kept.size();
  estimate.samples = std::min(estimate.samples + samples, static_cast<double>(contents.count));
  estimate.has_most |= 2 * found > kept.size();
}

bool is_told(const Estimate& estimate, std::int64_t count) {
  constexpr double kShareLearnt = 0.1;
  return estimate.has_most ||
         (estimate.found >= kFewFound && estimate.samples > kShareLearnt * static_cast<double>(count));
}

// "" of few.
std::string learnt_text(const DataRequest& request, const Estimate& estimate,
                        const SampleContents& contents) {
  if (!is_told(estimate, contents.count)) return "";
  return fmt::format(
      "--data {}: {} of {} {} that the training had are among these {}, so that it may have learnt "
      "from about {} of them: their accuracy is not that of new {}",
      request.data.value_or(""), estimate.found, estimate.kept, contents.name, contents.count,
      static_cast<std::int64_t>(estimate.samples), contents.name);
}

// "--data x.csv: the training has learnt from 540 of these 600 samples: …"; "" where none were found.
std::string told_count(const DataRequest& request, const LearntCount& learnt, std::int64_t among,
                       const char* name, const char* what, const char* why) {
  if (learnt.share == 0 && learnt.samples == 0) return "";
  const bool is_text = learnt.share > 0;
  const std::string count =
      is_text ? fmt::format("about {:.{}f} % of this text", 100 * learnt.share, learnt.share < 0.1 ? 1 : 0)
              : fmt::format("{}{} of these {} {}", learnt.is_estimate ? "about " : "", learnt.samples, among,
                            name);
  return fmt::format("--data {}: the training has learnt from {}{}{}: the accuracy is not that of {}",
                     request.data.value_or(""), count, what, why,
                     is_text ? "a new text" : fmt::format("new {}", name));
}

// Whether all that the start has learnt from is at hand, and what is asked for can be found in it.
bool is_kept(const DataRequest& request, const SampleDigests& trained, const SampleContents& contents) {
  return request.learnt && trained.are_kept && can_be_found(contents);
}

// Whether the count of what is kept says all. A text's lines that were drawn at random are no passages of it;
// the estimate finds them.
bool is_known(const DataRequest& request, const SampleDigests& trained, const SampleContents& contents) {
  return is_kept(request, trained, contents) && !contents.pieces;
}

// By all samples that are kept of the trainings; "" where these are none or few.
std::string known_text(const DataRequest& request, const SampleContents& contents) {
  if (!request.learnt || !can_be_found(contents)) return "";
  return told_count(request, learnt_among(*request.learnt, contents), contents.count, contents.name, "", "");
}

std::string text_of(const DataRequest& request, const Estimate& estimate, const SampleContents& contents) {
  const std::int64_t count = contents.count;
  const std::string data = request.data.value_or("");
  std::string learnt = learnt_text(request, estimate, contents);
  if (!learnt.empty() || !request.is_own) return learnt;
  return fmt::format("--data {}: it no longer holds the {} that the training had, and all {} are tested",
                     data, contents.name, count);
}

}  // namespace

SampleDigests digests_of(std::span<const std::int64_t> drawn, const SampleContents& contents) {
  SampleDigests kept{.samples = contents.count, .drawn = std::ssize(drawn)};
  const auto add = [&](std::int64_t place, std::vector<std::uint64_t>& digests) {
    digests.push_back(contents.digest(place));
    if (contents.bytes) kept.bytes.push_back(contents.bytes(place));
  };
  for (const std::int64_t place : drawn.first(std::min(drawn.size(), kMostKept))) add(place, kept.digests);
  const std::vector<std::int64_t> others =
      telling_ones(others_than({drawn.begin(), drawn.end()}, contents.count), contents);
  const std::size_t most = std::min(others.size(), kMostKept);
  for (std::size_t i = 0; i < most; ++i) add(others[i * others.size() / most], kept.learnt);
  if (!contents.bytes) kept.all = digest_of_rows(contents, contents.count);
  LearntSamples all = learnt_samples(drawn, contents);
  kept.are_kept = !all.marks.empty();
  if (kept.are_kept) kept.kept = std::make_shared<const LearntSamples>(std::move(all));
  return kept;
}

std::function<SampleDigests()> digests_later(std::vector<std::int64_t> drawn, SampleContents contents) {
  return [drawn = std::move(drawn), contents = std::move(contents)] { return digests_of(drawn, contents); };
}

Seen seen_in_training(const DataRequest& request, std::span<const std::int64_t> drawn,
                      const SampleContents& contents) {
  const std::string data = request.data.value_or("");
  Estimate estimate;
  bool is_unknown = false;
  for (const SampleDigests& trained : request.trained) {
    if (is_same(trained, request, drawn, contents)) {
      if (request.is_own) return {.is_same = true};
      return {.is_same = true,
              .text = fmt::format("--data {}: these are the {} {} of the training, so that only the {} "
                                  "that it drew for testing are tested",
                                  data, contents.count, contents.name, drawn.size())};
    }
    is_unknown |= !is_comparable(trained, contents);
    if (is_comparable(trained, contents) && !is_known(request, trained, contents))
      add_estimate(estimate, trained, contents);
  }
  if (request.trained.empty()) return {};
  if (std::string known = known_text(request, contents); !known.empty()) return {.text = std::move(known)};
  if (is_unknown && !is_told(estimate, contents.count))
    return {.text = fmt::format("--data {}: the model may have learnt from some of these {} pictures: the "
                                "config.json of its folder is of a version that kept names of pictures and "
                                "not what is in them; a training that goes on there keeps it",
                                data, contents.count)};
  return {.text = text_of(request, estimate, contents)};
}

std::string learnt_of_part(const DataRequest& request, const SampleContents& part) {
  Estimate estimate;
  if (std::string known = known_text(request, part); !known.empty()) return known;
  for (const SampleDigests& trained : request.trained)
    if (is_comparable(trained, part) && !is_known(request, trained, part))
      add_estimate(estimate, trained, part);
  return learnt_text(request, estimate, part);
}

std::string learnt_before(const DataRequest& request, std::span<const std::int64_t> drawn,
                          const SampleContents& contents) {
  constexpr const char* kWhy =
      ", as where rows were moved since, or where --init-from has learnt with another --seed";
  bool was_asked = false;
  for (const SampleDigests& trained : request.trained) {
    if (!is_comparable(trained, contents) || is_same(trained, request, drawn, contents)) continue;
    if (is_kept(request, trained, contents) && !std::exchange(was_asked, true)) {
      const LearntCount learnt = contents.pieces
                                     ? learnt_among(*request.learnt, contents.drawn_pieces, *contents.pieces)
                                     : learnt_among(*request.learnt, drawn, contents);
      std::string text = told_count(request, learnt, std::ssize(drawn), contents.name, " for testing", kWhy);
      if (!text.empty()) return text;
    }
    if (is_known(request, trained, contents)) continue;
    const Digests kept = set_of(trained.learnt);
    const std::size_t found = found_among(kept, trained, drawn, contents).size();
    if (found == 0 || (contents.pieces && found < kFewFound)) continue;
    const double learnt = learnt_of(trained, found, kept.size(), chance_of_twin(contents, std::ssize(drawn)));
    if (learnt == 0) continue;
    const std::int64_t some =
        std::clamp<std::int64_t>(static_cast<std::int64_t>(learnt), 1, std::ssize(drawn));
    return told_count(request, {.samples = some, .is_estimate = true}, std::ssize(drawn), contents.name,
                      " for testing", kWhy);
  }
  return "";
}

bool is_shared_out(const DataRequest& request, Wanted wanted, std::span<const std::int64_t> drawn,
                   const SampleContents& contents, std::vector<std::string>& warnings) {
  const Seen seen = request.whole ? seen_in_training(request, drawn, contents) : Seen();
  const std::string learnt = wanted.train || seen.is_same ? learnt_before(request, drawn, contents) : "";
  for (const std::string& text : {seen.text, learnt})
    if (!text.empty()) warnings.push_back(text);
  return !request.whole || seen.is_same;
}

}  // namespace kolo::models::detail
