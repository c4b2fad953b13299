// Arrays from NumPy's files.
#pragma once

#include <filesystem>

#include <kolo/core/tensor/tensor.h>

namespace kolo::models {

/// The array of a file that numpy.save has written (format 1.0 to 3.0, numpy.lib.format): f32 f64 i32 i64 u8
/// of this processor's byte order, row-major. Each error is one line that begins with the path:
/// InvalidArgumentError for another type (named) or a Fortran-ordered array, DataLossError for what is no
/// such file, a header that does not parse, and a file that is shorter or longer than its header says, which
/// is checked before memory is taken; what InputFile throws.
Tensor read_npy(const std::filesystem::path& path);

}  // namespace kolo::models
