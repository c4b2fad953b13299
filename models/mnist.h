// MNIST from its four IDX files: {train,t10k}-images-idx3-ubyte[.gz] and {train,t10k}-labels-idx1-ubyte[.gz].
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include <kolo/core/tensor/tensor.h>
#include <kolo/models/dataset.h>

namespace kolo::models {

/// Of the IDX format (http://yann.lecun.com/exdb/mnist: a magic number, big-endian dimensions, then the
/// elements): the u8 tensor with `dimensions` dimensions in `path`, gzip-compressed or plain (told by the
/// content, not by the name). Each error is one line that begins with the path: NotFoundError: no such file.
/// UnavailableError: it cannot be read. InvalidArgumentError: wrong magic, element type or number of
/// dimensions. DataLossError: truncated, damaged gzip data, fewer elements than announced, or trailing bytes.
/// The announced sizes are not believed: memory grows with what has been read.
Tensor read_idx(const std::filesystem::path& path, int dimensions);

/// The folder of the files: `asked`; if nothing was asked for $KOLO_DATA_DIR/mnist, else data/mnist under the
/// working directory. Throws NotFoundError: the folder asked for is none, KOLO_DATA_DIR is set and is none,
/// or neither place is there (naming both).
std::filesystem::path find_mnist(const std::optional<std::string>& asked);

/// True if any of MNIST's files is in `folder`.
bool is_mnist(const std::filesystem::path& folder);
/// True if either test file is in `folder`: the test split may be absent, but not halved.
bool has_mnist_test(const std::filesystem::path& folder);

/// Each error names its file: those of read_idx; NotFoundError for a file that is absent both plain and as
/// .gz; InvalidArgumentError if the images are not 28×28, if there are none, if the numbers of images and
/// labels differ (both files and counts named) or if a label is above 9 (index and value named).
Dataset load_mnist(const std::filesystem::path& folder, Split split);

}  // namespace kolo::models
