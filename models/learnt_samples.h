// Which samples of other data a training has learnt from, by all that it had.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include <kolo/models/sample_contents.h>
#include <kolo/models/sample_digests.h>

namespace kolo::models::detail {

/// Of those samples that were not drawn for testing. Of pictures it reads parts of each file; of very many
/// samples it keeps some. asked: of pictures, those alone that may be found among these are wanted.
LearntSamples learnt_samples(std::span<const std::int64_t> drawn, const SampleContents& contents,
                             const SampleContents* asked = nullptr);

/// Of both; either may be nullptr.
std::shared_ptr<const LearntSamples> joined(const std::shared_ptr<const LearntSamples>& a,
                                            const std::shared_ptr<const LearntSamples>& b);

/// How many samples were found among those of a training. All 0 where chance explains them, and of few.
struct LearntCount {
  std::int64_t samples = 0;
  double share = 0;          // of a text
  bool is_estimate = false;  // by some of the samples
};
/// Of the samples at these places, in order; of a text of its pieces there.
LearntCount learnt_among(const LearntSamples& learnt, std::span<const std::int64_t> places,
                         const SampleContents& contents);
/// Of all of them.
LearntCount learnt_among(const LearntSamples& learnt, const SampleContents& contents);

/// Whether it can be told of them: a text of a few lines has too few pieces.
bool can_be_found(const SampleContents& contents);

}  // namespace kolo::models::detail
