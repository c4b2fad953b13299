// Whether other data hold the samples of an earlier training, wherever they lie now.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include <kolo/models/data.h>

namespace kolo::models::detail {

inline constexpr std::uint64_t kDigestOfNothing = 0xcbf29ce484222325;
/// A number of these bytes (FNV-1a). before: of those in front of them. A faster hash would draw other
/// pictures for testing than folders of checkpoints so far have trained without.
std::uint64_t digest_of_bytes(std::span<const std::byte> bytes, std::uint64_t before = kDigestOfNothing);

/// What samples are known again by: what is in them, whatever they are called and wherever they lie.
struct SampleContents {
  std::int64_t count = 0;
  std::function<std::uint64_t(std::int64_t place)> digest;
  // Of pictures: bytes of the file, which cost no reading. A file of another length is another picture.
  std::function<std::uint64_t(std::int64_t place)> bytes = {};
};

/// By which data are known again of which these samples were drawn for testing.
DrawnDigests digests_of_drawn(std::span<const std::int64_t> drawn, const SampleContents& contents);

/// What a training has seen of data that lie elsewhere than its own.
struct Seen {
  bool is_same = false;  // they are its own data: all of its samples and no others
  std::string text;      // what to say of it; "": it has seen hardly anything
};

/// drawn: those of the samples that the training's seed draws, none where all are for testing anyway. The
/// rest of the data are compared by what the training kept of its drawn samples, at most 64: exact for the
/// same data, an estimate for others.
Seen seen_in_training(const DataRequest& request, std::span<const std::int64_t> drawn,
                      const SampleContents& contents);

}  // namespace kolo::models::detail
