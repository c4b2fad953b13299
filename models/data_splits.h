// Which samples train, and which test.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <kolo/models/data.h>

namespace kolo::models::detail {

/// Which splits are asked for.
struct Wanted {
  bool train = false, test = false;
};

/// Where a folder of pictures has both, a training looks at one part while it learns, and the trained model
/// is tested with another.
inline Split evaluated(Wanted wanted) { return wanted.train ? Split::validation : Split::test; }

/// Each split for itself, by read(request, split). The test split is read as the training's is.
template <typename Read>
DataSplits each_split(const DataRequest& request, Wanted wanted, const Read& read) {
  DataSplits splits;
  DataRequest asked = request;
  if (wanted.train) {
    splits.train = read(asked, Split::train);
    asked.classes = splits.train->kind().classes;
    asked.class_names = splits.train->kind().class_names;
    asked.label_kind = splits.train->kind().label_kind;
    asked.with_train = true;
  }
  if (wanted.test) splits.test = read(asked, Split::test);
  return splits;
}

/// Joins notes by commas; "" adds nothing.
inline void add_note(std::string& notes, const std::string& note) {
  if (!note.empty()) notes += (notes.empty() ? "" : ", ") + note;
}

/// The places of the samples for testing, sorted: about one in ten, drawn by the seed, none of fewer than
/// ten. Whether a sample is drawn depends on its key alone, so that one that is added later moves no other
/// from training to testing; but at least one is drawn, and of each class one stays in training: a drawn one
/// that is the only one of its class stays until another is added. labels: the classes of the samples; empty:
/// they have none.
std::vector<std::int64_t> drawn_for_testing(std::span<const std::uint64_t> keys, std::uint64_t seed,
                                            std::span<const std::int32_t> labels = {});
/// The numbers below `count` that are not among `drawn`.
std::vector<std::int64_t> others_than(const std::vector<std::int64_t>& drawn, std::int64_t count);

}  // namespace kolo::models::detail
