// Arrays from NumPy's files.
#pragma once

#include <filesystem>

#include <kolo/core/tensor/tensor.h>

namespace kolo::models {

/// The array of a file that numpy.save has written (format 1.0 to 3.0, numpy.lib.format), row-major: f32 f64
/// i32 i64 u8 bool as they are, f16 as f32, i8 i16 u16 as i32, u32 as i64, of either order of bytes; what is
/// stored in Fortran's order is transposed. Each error is one line that begins with the path:
/// InvalidArgumentError for another type (named), DataLossError for what is no such file, a header that does
/// not parse, and a file that is shorter or longer than its header says, which is checked before memory is
/// taken; what InputFile throws.
Tensor read_npy(const std::filesystem::path& path);

}  // namespace kolo::models
