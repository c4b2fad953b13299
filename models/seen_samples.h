// Whether other data hold the samples of an earlier training, wherever they lie now.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include <kolo/models/data.h>

namespace kolo::models::detail {

/// A number of these bytes (FNV-1a). before: of those in front of them.
std::uint64_t digest_of_bytes(std::span<const std::byte> bytes, std::uint64_t before = 0xcbf29ce484222325);

/// Of the sample at this place.
using DigestOf = std::function<std::uint64_t(std::int64_t place)>;

/// By which data are known again of which these samples, of `count`, were drawn for testing.
DrawnDigests digests_of_drawn(std::span<const std::int64_t> drawn, std::int64_t count,
                              const DigestOf& digest_of);

/// What a training has seen of data that lie elsewhere than its own.
struct Seen {
  bool is_same = false;  // they are its own data: all of its samples and no others
  std::string text;      // what to say of it; "": it has seen hardly anything
};

/// drawn: those of the `count` samples that the training's seed draws. The rest of the data are compared by
/// what the training kept of its drawn samples, at most 64: exact for the same data, an estimate for others.
Seen seen_in_training(const DataRequest& request, std::span<const std::int64_t> drawn, std::int64_t count,
                      const DigestOf& digest_of);

}  // namespace kolo::models::detail
