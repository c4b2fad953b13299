// CIFAR-10 from its binary version: data_batch_1.bin … data_batch_5.bin and test_batch.bin.
#pragma once

#include <filesystem>

#include <kolo/models/dataset.h>

namespace kolo::models {

/// True if data_batch_1.bin or test_batch.bin is in `folder`.
bool is_cifar10(const std::filesystem::path& folder);
/// True if test_batch.bin is: the test split may be absent.
bool has_cifar10_test(const std::filesystem::path& folder);

/// Images u8 [N,3,32,32]; the format: https://www.cs.toronto.edu/~kriz/cifar.html, records of a label and
/// 3,072 pixels, red, green, blue. Of the training batches those from 1 to 5 that are there without a gap.
/// Classes are named as batches.meta.txt has them, and as CIFAR-10's where the file is not there.
/// Each error names its file: NotFoundError for one that is absent, DataLossError where it is empty or ends
/// within a record, InvalidArgumentError for a label above 9 (record and value named), what InputFile throws.
Dataset load_cifar10(const std::filesystem::path& folder, Split split);

}  // namespace kolo::models
