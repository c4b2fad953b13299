// Pictures that cannot be read, found before the first step.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <kolo/models/programs/train_options.h>
#include <kolo/models/programs/training_data.h>

namespace kolo::models {

/// Of both splits, where they are decoded from files: each rank checks the headers of its share, with as many
/// threads as decode, and the first damaged file is a SharedError with its name. With --skip-damaged all of
/// each file is decoded, and rank 0 names and counts those that are left out. All ranks call it together.
void check_pictures(const TrainOptions& options, TrainingData& data);

/// Samples that cannot be read, and why.
using DamagedSamples = std::map<std::int64_t, std::string>;

/// Rank 0 counts and names in one line those that are left out on any rank. of_what: "40 pictures of pets".
/// Returns the places of all, sorted. All ranks call it together.
std::vector<std::int64_t> tell_damaged(const DamagedSamples& own, const std::string& of_what);

}  // namespace kolo::models
