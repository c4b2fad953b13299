#include <kolo/models/seen_samples.h>

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace kolo::models::detail {

std::uint64_t digest_of_bytes(std::span<const std::byte> bytes, std::uint64_t before) {
  for (const std::byte one : bytes) before = (before ^ std::to_integer<std::uint64_t>(one)) * 0x100000001b3;
  return before;
}

DrawnDigests digests_of_drawn(std::span<const std::int64_t> drawn, std::int64_t count,
                              const DigestOf& digest_of) {
  constexpr std::size_t kMostKept = 64;
  DrawnDigests kept{.samples = count};
  for (const std::int64_t place : drawn.first(std::min(drawn.size(), kMostKept)))
    kept.digests.push_back(digest_of(place));
  return kept;
}

Seen seen_in_training(const DataRequest& request, std::span<const std::int64_t> drawn, std::int64_t count,
                      const DigestOf& digest_of) {
  const DrawnDigests& trained = request.drawn;
  if (trained.digests.empty()) return {};
  const std::string data = request.data.value_or("");
  if (count == trained.samples && digests_of_drawn(drawn, count, digest_of).digests == trained.digests)
    return {
        .is_same = true,
        .text = fmt::format("--data {}: these are the {} samples of the training, so that only the {} that "
                            "it drew for testing are tested",
                            data, count, drawn.size())};
  const std::set<std::uint64_t> kept(trained.digests.begin(), trained.digests.end());
  std::set<std::uint64_t> found;
  for (std::int64_t i = 0; i < count && found.size() < kept.size(); ++i)
    if (const std::uint64_t digest = digest_of(i); kept.contains(digest)) found.insert(digest);
  if (2 * found.size() <= kept.size()) return {};
  const auto share = static_cast<double>(found.size()) / static_cast<double>(kept.size());
  const auto seen = std::min(count, static_cast<std::int64_t>(share * static_cast<double>(trained.samples)));
  return {
      .is_same = false,
      .text = fmt::format(
          "--data {}: {} of {} samples that the training had are among these {}, so that it may have learnt "
          "from about {} of them, which new samples would not be; testing.txt names those that it has not",
          data, found.size(), kept.size(), count, seen)};
}

}  // namespace kolo::models::detail
