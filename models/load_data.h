// Labelled samples by the name of what holds them: where kolo-train gets them from.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include <kolo/models/samples.h>

namespace kolo::models {

/// What is asked for, and what the model can take.
struct DataRequest {
  std::optional<std::string> data;  // as --data: a folder, a file, "generated"; none: MNIST's places
  Shape sample;                     // of the model: [C,H,W], to which photographs are brought; [T] of a text
  DType input = DType::f32;         // i32: tokens
  bool augment = false;             // training images: shifted by up to 4 pixels, in colour mirrored as well
};

/// A file: a text (text.h), of which the last tenth is for testing; with a name that ends in .csv a table
/// (csv.h). A folder: CIFAR-10 (cifar10.h); x_train.npy and y_train.npy, x_test.npy and y_test.npy (npy.h; x
/// [N,…] f32 f64 u8, y [N] of whole numbers; x [N,H,W] are images of one channel); train.csv and test.csv;
/// photographs, a folder for each class (image_folder.h); MNIST's digits (digits.h). Images [N,H,W,C] are
/// transposed where [N,C,H,W] is impossible. Nothing if the test split
/// is asked for and is not there. Throws what those throw, and InvalidArgumentError for pixels where the
/// model takes tokens or the reverse, and where the two splits do not fit together.
std::shared_ptr<const SampleSet> load_data(const DataRequest& request, Split split);

/// "CIFAR-10, 50000 images of 3 channels, 32 x 32": samples and what they are.
std::string description(const SampleSet& samples);

}  // namespace kolo::models
