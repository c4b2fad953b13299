// Which samples are asked for, and those that are found.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <kolo/models/csv_options.h>
#include <kolo/models/samples.h>

namespace kolo::models {

/// What is asked for, and what the model can take.
struct DataRequest {
  std::optional<std::string> data;  // as --data: a folder, a file, "generated"; none: MNIST's places
  Shape sample;                     // of the model: [C,H,W], to which photographs are brought; [T] of a text
  DType input = DType::f32;         // i32: tokens
  CsvOptions table = {};  // of tables; its `known` is that of the training, where that is there already
  // Of the training, where it is there already: labels are numbered as these, or are numbers from 0 on.
  std::int64_t classes = 0;                   // 0: as they are found
  std::vector<std::string> class_names = {};  // empty: numbers
  std::optional<bool> regression = {};  // whether labels are numbers to be found; none: as they are found
  std::uint64_t seed = 1;  // by which the samples of one table are shared out to training and testing
  bool whole = false;      // other data than the training's, without a test part: all of it is for testing
  bool augment = false;    // training images: shifted by up to 4 pixels, in colour mirrored as well
};

/// nullptr: not asked for, or not there.
struct DataSplits {
  std::shared_ptr<const SampleSet> train, test;
};

}  // namespace kolo::models
