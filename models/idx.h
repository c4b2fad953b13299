// The IDX format of the MNIST files: a magic number, big-endian dimensions, then the elements.
// Source: http://yann.lecun.com/exdb/mnist, "The IDX file format".
#pragma once

#include <filesystem>

#include <kolo/core/tensor/tensor.h>

namespace kolo::models {

/// The u8 tensor with `dimensions` dimensions in `path`, gzip-compressed or plain (told by the content, not
/// by the name). Each error is one line that begins with the path: NotFoundError: no such file.
/// UnavailableError: it cannot be read. InvalidArgumentError: wrong magic, element type or number of
/// dimensions. DataLossError: truncated, damaged gzip data, fewer elements than announced, or trailing bytes.
/// The announced sizes are not believed: memory grows with what has been read.
Tensor read_idx(const std::filesystem::path& path, int dimensions);

}  // namespace kolo::models
