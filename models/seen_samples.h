// Whether other data hold the samples of an earlier training, wherever they lie now.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include <kolo/models/data.h>
#include <kolo/models/data_splits.h>
#include <kolo/models/sample_contents.h>

namespace kolo::models::detail {

/// By which samples are known again of which these were drawn for testing and the others learnt from.
SampleDigests digests_of(std::span<const std::int64_t> drawn, const SampleContents& contents);

/// The same when it is called: it asks for all samples.
std::function<SampleDigests()> digests_later(std::vector<std::int64_t> drawn, SampleContents contents);

/// What a training has seen of data that are to be tested.
struct Seen {
  bool is_same = false;   // they are its own data: it has not learnt from those that are drawn
  std::string text = {};  // what to say of it; "": it has seen hardly anything
};

/// Of data without a test part. drawn: those of the samples that the training's seed draws, none where all
/// are for testing anyway. Data elsewhere are the training's own if all that is kept of them says so, and the
/// training's file or folder, which may have grown, if most of its drawn samples are drawn again and none
/// that it has learnt from. Of all others how many samples are among those that the training has learnt from
/// (learnt_among). Where nobody kept these, an estimate: by the digests of at most 64 samples of each start.
/// It is told where most of these are found, or where a tenth of the data was learnt.
Seen seen_in_training(const DataRequest& request, std::span<const std::int64_t> drawn,
                      const SampleContents& contents);

/// Of data with a part for testing of its own, this: how many samples alone.
std::string learnt_of_part(const DataRequest& request, const SampleContents& part);

/// Of a training that goes on, or begins with the weights of another one: what to say where samples are for
/// testing from which these have learnt, because rows were moved or another seed has drawn; "" where there
/// are none. Of an evaluation of a training's own data the same.
std::string learnt_before(const DataRequest& request, std::span<const std::int64_t> drawn,
                          const SampleContents& contents);

/// Whether of data without a test part the samples `drawn` alone are for testing; else all are. Adds to
/// `warnings` what the two functions above say.
bool is_shared_out(const DataRequest& request, Wanted wanted, std::span<const std::int64_t> drawn,
                   const SampleContents& contents, std::vector<std::string>& warnings);

}  // namespace kolo::models::detail
