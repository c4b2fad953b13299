// NumPy's arrays as samples: of the types and in the order of dimensions that models take.
#pragma once

#include <filesystem>
#include <string>

#include <kolo/core/tensor/tensor.h>

namespace kolo::models {

/// The samples of an array, as models take them.
struct NpySamples {
  Tensor x;               // f32 or u8: [N,C,H,W], [N,D]
  std::string note = {};  // what was taken for what: "x.npy [9,8,8,3] is taken as channels last"
};

/// f16 and f64 become f32, bool 0 and 1; [N,H,W] are images of one channel; [N,H,W,C] is transposed where
/// [N,C,H,W] is impossible. Throws InvalidArgumentError for another type and for fewer than two dimensions,
/// and what read_npy throws.
NpySamples read_npy_samples(const std::filesystem::path& path);

/// The same as batches of `sample`; an array of sample's own shape is one. Throws InvalidArgumentError that
/// names both shapes where they differ.
Tensor read_npy_samples(const std::filesystem::path& path, const Shape& sample);

}  // namespace kolo::models

namespace kolo::models::detail {

/// The numbers of what read_npy gives, as they are.
Tensor as_f32(const Tensor& x);

}  // namespace kolo::models::detail
