// NumPy's arrays of samples with their labels.
#pragma once

#include <filesystem>
#include <memory>

#include <kolo/models/data.h>
#include <kolo/models/shared_samples.h>

namespace kolo::models::detail {

/// x_train.npy with y_train.npy, or those of the test split; nothing where there are none of it. y of whole
/// numbers [N] are classes, of whole numbers [N,labels] that are all 0 or 1 several labels, of fractions
/// numbers to find. learnt: gets the training's samples, and says what it knows of the test split's. Throws
/// as load_data says.
std::shared_ptr<const SampleSet> npy_pair(const std::filesystem::path& folder, const DataRequest& request,
                                          Split split, LearntPart& learnt);

}  // namespace kolo::models::detail
