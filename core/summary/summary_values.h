// Values as TensorBoard shows them, outside of a graph: what a SummaryWriter adds. In a graph the ops of
// core/ops/summaries.h make the same.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <kolo/core/tensor/tensor.h>

namespace kolo {

/// A summary: a serialised protobuf message, tensorflow.Summary, of any number of values with a tag each.
using SummaryBytes = std::string;

/// A number, as a point of the curve `tag`.
SummaryBytes scalar_summary(const std::string& tag, double value);

/// How the elements of `values`, numbers of any shape, are spread: counted in buckets whose ends grow by a
/// tenth from 1e-12 on. Throws InvalidArgumentError `Nan in summary histogram for: <tag>`, `Infinity in
/// summary histogram for: <tag>`.
SummaryBytes histogram_summary(const std::string& tag, const Tensor& values);

/// RGBA of pixels that are not finite.
using BadColor = std::array<std::uint8_t, 4>;
inline constexpr BadColor kRed = {255, 0, 0, 255};

/// The first `max_images` of `images` [images, height, width, channels], channels 1 (gray), 3 (RGB) or 4
/// (RGBA), as PNG under the tags `<tag>/image/0`, …, or `<tag>/image` where max_images is 1. u8: as they are.
/// f32, f64, f16, bf16: each image is scaled by itself, so that its largest value is 255; one with values
/// below zero so that 0 is 128 and the largest amount 127. Throws InvalidArgumentError `Tensor must be 4-D
/// with last dim 1, 3, or 4, not <shape>`, for other types, and for max_images below 1.
SummaryBytes image_summary(const std::string& tag, const Tensor& images, int max_images = 3,
                           const BadColor& bad_color = kRed);

/// A tensor of strings (Markdown), shown as text, one of rank 1 or 2 as a table. Throws InvalidArgumentError
/// `Expected tensor <tag> to have dtype string, got <dtype>`.
SummaryBytes text_summary(const std::string& tag, const Tensor& text);
SummaryBytes text_summary(const std::string& tag, const std::string& text);

/// Any tensor, with what a plug-in of TensorBoard wants to know: a serialised tensorflow.SummaryMetadata.
/// Throws InvalidArgumentError if that is none.
SummaryBytes tensor_summary(const std::string& tag, const Tensor& value, std::string_view metadata);

/// All values of all. Throws InvalidArgumentError `Duplicate tag <tag> found in summary inputs`, and where
/// one is no summary.
SummaryBytes merge_summaries(std::span<const SummaryBytes> summaries);

}  // namespace kolo
