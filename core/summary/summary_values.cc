#include <kolo/core/summary/summary_writer.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <vector>

#include <kolo/core/base/error.h>
#include <kolo/core/summary/histogram.h>
#include <kolo/core/summary/png.h>

#include "event_encoding_internal.h"

namespace kolo {
namespace {

using Pixels = std::vector<std::uint8_t>;

struct Scaling {
  float scale;
  float offset;
};

// TensorFlow's rule (core/kernels/summary_image_op.cc).
Scaling scaling_of(float least, float largest) {
  constexpr float kZero = 1e-6F;
  if (least < 0) {
    const float amount = std::max(std::abs(least), std::abs(largest));
    return {amount < kZero ? 0 : 127 / amount, 128};
  }
  return {largest < kZero ? 0 : 255 / largest, 0};
}

// One image of floating numbers, `channels` of each pixel side by side.
template <typename T>
Pixels scaled(const T* values, std::int64_t pixels, std::int64_t channels, const BadColor& bad_color) {
  const auto at = [&](std::int64_t pixel, std::int64_t channel) {
    return static_cast<float>(values[pixel * channels + channel]);
  };
  const auto is_finite = [&](std::int64_t pixel) {
    for (std::int64_t c = 0; c < channels; ++c)
      if (!std::isfinite(at(pixel, c))) return false;
    return true;
  };
  float least = std::numeric_limits<float>::infinity(), largest = -least;
  for (std::int64_t i = 0; i < pixels; ++i)
    for (std::int64_t c = 0; is_finite(i) && c < channels; ++c) {
      least = std::min(least, at(i, c));
      largest = std::max(largest, at(i, c));
    }
  const Scaling scaling = scaling_of(least, largest);
  Pixels bytes;
  bytes.reserve(static_cast<std::size_t>(pixels * channels));
  for (std::int64_t i = 0; i < pixels; ++i)
    for (std::int64_t c = 0; c < channels; ++c)
      bytes.push_back(is_finite(i) ? static_cast<std::uint8_t>(at(i, c) * scaling.scale + scaling.offset)
                                   : bad_color[static_cast<std::size_t>(c)]);
  return bytes;
}

Pixels pixels_of(const Tensor& image, std::int64_t pixels, std::int64_t channels, const BadColor& bad) {
  switch (image.dtype()) {
    case DType::u8: return {image.data<std::uint8_t>(), image.data<std::uint8_t>() + image.elements()};
    case DType::f32: return scaled(image.data<float>(), pixels, channels, bad);
    case DType::f64: return scaled(image.data<double>(), pixels, channels, bad);
    case DType::f16: return scaled(image.data<Half>(), pixels, channels, bad);
    case DType::bf16: return scaled(image.data<BFloat16>(), pixels, channels, bad);
    default:
      throw InvalidArgumentError("image_summary: the images are {}; u8 or floating numbers would be right",
                                 image.dtype());
  }
}

bool is_batch_of_images(const Shape& shape) {
  if (shape.rank() != 4) return false;
  const std::int64_t channels = shape.dim(3);
  constexpr std::int64_t kLongestSide = 1 << 24;
  return (channels == 1 || channels == 3 || channels == 4) && shape.dim(1) < kLongestSide &&
         shape.dim(2) < kLongestSide;
}

}  // namespace

SummaryBytes scalar_summary(const std::string& tag, double value) {
  event::Summary summary;
  event::Summary::Value& added = *summary.add_value();
  added.set_tag(tag);
  added.set_simple_value(static_cast<float>(value));
  return summary.SerializeAsString();
}

SummaryBytes histogram_summary(const std::string& tag, const Tensor& values) {
  detail::Histogram histogram;
  histogram.add(values, tag);
  event::Summary summary;
  event::Summary::Value& added = *summary.add_value();
  added.set_tag(tag);
  event::HistogramProto& message = *added.mutable_histo();
  message.set_min(histogram.min());
  message.set_max(histogram.max());
  message.set_num(histogram.num());
  message.set_sum(histogram.sum());
  message.set_sum_squares(histogram.sum_squares());
  for (const auto& [limit, count] : histogram.buckets()) {
    message.add_bucket_limit(limit);
    message.add_bucket(count);
  }
  return summary.SerializeAsString();
}

SummaryBytes image_summary(const std::string& tag, const Tensor& images, int max_images,
                           const BadColor& bad_color) {
  const Shape& shape = images.shape();
  if (!is_batch_of_images(shape))
    throw InvalidArgumentError("Tensor must be 4-D with last dim 1, 3, or 4, not {}", shape);
  if (max_images < 1) throw InvalidArgumentError("max_images is {}; it must be above 0", max_images);
  const std::int64_t height = shape.dim(1), width = shape.dim(2), channels = shape.dim(3);
  event::Summary summary;
  for (std::int64_t i = 0; i < std::min<std::int64_t>(max_images, shape.dim(0)); ++i) {
    const Pixels pixels = pixels_of(images.rows(i, i + 1), height * width, channels, bad_color);
    event::Summary::Value& added = *summary.add_value();
    added.set_tag(max_images == 1 ? tag + "/image" : tag + "/image/" + std::to_string(i));
    event::Summary::Image& image = *added.mutable_image();
    image.set_height(static_cast<int>(height));
    image.set_width(static_cast<int>(width));
    image.set_colorspace(static_cast<int>(channels));
    image.set_encoded_image_string(detail::encode_png(pixels, static_cast<int>(height),
                                                      static_cast<int>(width), static_cast<int>(channels)));
  }
  return summary.SerializeAsString();
}

SummaryBytes text_summary(const std::string& tag, const Tensor& text) {
  if (text.dtype() != DType::string)
    throw InvalidArgumentError("Expected tensor {} to have dtype string, got {}", tag, text.dtype());
  event::SummaryMetadata metadata;
  metadata.mutable_plugin_data()->set_plugin_name("text");
  return tensor_summary(tag, text, metadata.SerializeAsString());
}

SummaryBytes text_summary(const std::string& tag, const std::string& text) {
  return text_summary(tag, Tensor::scalar(text));
}

SummaryBytes tensor_summary(const std::string& tag, const Tensor& value, std::string_view metadata) {
  event::Summary summary;
  event::Summary::Value& added = *summary.add_value();
  added.set_tag(tag);
  if (!added.mutable_metadata()->ParseFromString(std::string(metadata)))
    throw InvalidArgumentError("the metadata of the summary {} are no SummaryMetadata", tag);
  detail::encode(value, *added.mutable_tensor());
  return summary.SerializeAsString();
}

SummaryBytes merge_summaries(std::span<const SummaryBytes> summaries) {
  event::Summary merged, one;
  std::set<std::string> tags;
  for (const SummaryBytes& bytes : summaries) {
    if (!one.ParseFromString(bytes))
      throw InvalidArgumentError("Could not parse one of the summary inputs: it is no serialised summary");
    for (const event::Summary::Value& value : one.value())
      if (!tags.insert(value.tag()).second)
        throw InvalidArgumentError("Duplicate tag {} found in summary inputs", value.tag());
    merged.MergeFrom(one);
  }
  return merged.SerializeAsString();
}

}  // namespace kolo
