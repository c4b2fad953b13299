// Labelled samples by the name of what holds them: where kolo-train gets them from.
#pragma once

#include <memory>
#include <string>

#include <kolo/models/data_request.h>
#include <kolo/models/samples.h>

namespace kolo::models {

/// A file: a text (text.h), of which the last tenth is for testing; with a name that ends in .csv or .tsv a
/// table (csv.h), of whose rows a tenth, drawn by the seed, is for testing. A folder: CIFAR-10 (cifar10.h);
/// x_train.npy and y_train.npy, x_test.npy and y_test.npy (npy.h; x [N,…] of numbers, y [N] of whole numbers;
/// x [N,H,W] are images of one channel); pictures with a table of their classes (named_images.h), shared out
/// as a table; photographs, a folder for each class (image_folder.h); train.csv and test.csv; other tables,
/// which together are one, shared out as that of a file; MNIST's digits (digits.h). Images [N,H,W,C] are
/// transposed where [N,C,H,W] is impossible. Nothing if the test split is asked for and is not there. Throws
/// what those throw; NotFoundError that says what lies in a folder of none of these kinds; and
/// InvalidArgumentError for pixels where the model takes tokens or the reverse, for options of tables where
/// there is none, for one class alone, and where the two splits do not fit together.
std::shared_ptr<const SampleSet> load_data(const DataRequest& request, Split split);
/// Both; a table is read once. Testing samples have the classes and columns of the training's.
DataSplits load_splits(const DataRequest& request);

/// "pets, 72 images of 3 channels, 32 x 32, 2 classes (cat: 30, dog: 42)": samples and what they are. More
/// than 12 classes are counted together.
std::string description(const SampleSet& samples);

}  // namespace kolo::models
