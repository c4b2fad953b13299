// By what the samples of a training are known again, wherever they lie.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace kolo::models {

/// All samples that trainings have learnt from, as numbers of what is in them; of a text, of short pieces of
/// it. A value.
struct LearntSamples {
  std::vector<std::uint64_t> marks;  // ascending, each once
  // Of very many samples about one of so many is kept, a power of two. Which ones, their marks say, so that
  // the same samples are asked for later.
  std::uint64_t one_of = 1;
  double chance = 0;  // that a new sample is alike one of them by chance, as where rows have few values
  bool operator==(const LearntSamples&) const = default;
};

/// Of one start of a training: digests of what is in some of its samples.
struct SampleDigests {
  std::int64_t samples = 0;                 // all of them
  std::int64_t drawn = 0;                   // of which so many were drawn for testing
  std::vector<std::uint64_t> digests = {};  // of the first ones that were drawn, in order
  std::vector<std::uint64_t> learnt = {};   // of some that were not, from all over; earlier versions: none
  std::vector<std::uint64_t> bytes = {};    // of pictures: lengths of all these files
  std::uint64_t all = 0;                    // of rows: of all of them, in order; 0 of pictures
  // That the folder's LearntSamples has those that were not drawn; and these, until they are written there.
  bool are_kept = false;
  std::shared_ptr<const LearntSamples> kept = nullptr;

  /// Whether they are of the same samples, wherever these are kept.
  bool is_same(const SampleDigests& other) const {
    return samples == other.samples && drawn == other.drawn && digests == other.digests &&
           learnt == other.learnt && bytes == other.bytes && all == other.all;
  }
};

}  // namespace kolo::models
