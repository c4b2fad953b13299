#include <kolo/models/seen_samples.h>

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace kolo::models::detail {
namespace {

// The different ones of the training's digests that are among these samples.
std::size_t found_among(const DrawnDigests& trained, const SampleContents& contents) {
  const std::set<std::uint64_t> kept(trained.digests.begin(), trained.digests.end()),
      lengths(trained.bytes.begin(), trained.bytes.end());
  std::set<std::uint64_t> found;
  for (std::int64_t i = 0; i < contents.count && found.size() < kept.size(); ++i) {
    if (contents.bytes && !lengths.contains(contents.bytes(i))) continue;
    if (const std::uint64_t digest = contents.digest(i); kept.contains(digest)) found.insert(digest);
  }
  return found.size();
}

}  // namespace

std::uint64_t digest_of_bytes(std::span<const std::byte> bytes, std::uint64_t before) {
  for (const std::byte one : bytes) before = (before ^ std::to_integer<std::uint64_t>(one)) * 0x100000001b3;
  return before;
}

DrawnDigests digests_of_drawn(std::span<const std::int64_t> drawn, const SampleContents& contents) {
  constexpr std::size_t kMostKept = 64;
  DrawnDigests kept{.samples = contents.count};
  for (const std::int64_t place : drawn.first(std::min(drawn.size(), kMostKept))) {
    kept.digests.push_back(contents.digest(place));
    if (contents.bytes) kept.bytes.push_back(contents.bytes(place));
  }
  return kept;
}

Seen seen_in_training(const DataRequest& request, std::span<const std::int64_t> drawn,
                      const SampleContents& contents) {
  const DrawnDigests& trained = request.drawn;
  if (trained.digests.empty()) return {};
  const std::string data = request.data.value_or("");
  if (contents.bytes && trained.bytes.empty())
    return {.is_same = false,
            .text = fmt::format("--data {}: the model may have learnt from some of these {} pictures: the "
                                "config.json of its folder is of a version that kept names of pictures and "
                                "not what is in them; a training that goes on there keeps it",
                                data, contents.count)};
  if (contents.count == trained.samples && digests_of_drawn(drawn, contents).digests == trained.digests)
    return {
        .is_same = true,
        .text = fmt::format("--data {}: these are the {} samples of the training, so that only the {} that "
                            "it drew for testing are tested",
                            data, contents.count, drawn.size())};
  const std::size_t kept = std::set(trained.digests.begin(), trained.digests.end()).size(),
                    found = found_among(trained, contents);
  if (2 * found <= kept) return {};
  const auto share = static_cast<double>(found) / static_cast<double>(kept);
  const auto seen =
      std::min(contents.count, static_cast<std::int64_t>(share * static_cast<double>(trained.samples)));
  return {
      .is_same = false,
      .text = fmt::format(
          "--data {}: {} of {} samples that the training had are among these {}, so that it may have learnt "
          "from about {} of them, which new samples would not be; testing.txt names those that it has not",
          data, found, kept, contents.count, seen)};
}

}  // namespace kolo::models::detail
