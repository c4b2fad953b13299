// Samples whose kind says more than array_samples can.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <kolo/models/samples.h>

namespace kolo::models::detail {

/// As array_samples, with the kind's name, note, class names and table; its shape is that of x, and classes 0
/// are found. For numbers to find and several labels (0 and 1) y is f32 [N,outputs]; throws
/// InvalidArgumentError for what is not finite there.
std::shared_ptr<const SampleSet> array_samples_of(SampleKind kind, Tensor x, Tensor y);

/// Throws InvalidArgumentError where a number of x, f32 or f64, is NaN or infinite as f32: how many are, and
/// the place of the first one, x[row,column]. A step or a prediction would be NaN, and tell of no place.
/// name: of what holds them. Other types: does nothing.
void check_finite(const std::string& name, const Tensor& x);

/// For messages: `lenet (28 x 28 in grey), resnet20 (32 x 32 in colour)`.
std::string models_for_images();

/// How large the numbers of samples are, whatever they mean.
struct NumberSizes {
  std::optional<float> largest, least;  // as SampleKind has them
  bool are_images = false;              // and many of them
};
/// So many have dark and bright pixels among them.
inline constexpr std::int64_t kManyImages = 20;
/// Of samples f32 [N,…], or u8, which become 0 to 1.
NumberSizes sizes_of_numbers(const Tensor& x);
/// Of pictures, which become 0 to 1.
inline constexpr NumberSizes kPixelSizes{.largest = 1, .least = 0, .are_images = true};

/// What to say of numbers of quite another size than those of the training, such as pixels up to 255 for a
/// model that knows them up to 1; "" of others. name: of their file.
std::string scale_warning(const std::string& name, std::optional<float> given, std::optional<float> trained);
/// The same, and what to say of numbers below 0 where the training had none, and of images without them where
/// it had: pixels of -1 to 1 for a model that knows them of 0 to 1, and the reverse.
std::string scale_warning(const std::string& name, const NumberSizes& given, const NumberSizes& trained);

/// Names of the folders that may hold a split which is none of training, the preferred one first.
inline std::array<const char*, 4> folders_of(Split split) {
  if (split == Split::validation) return {"val", "valid", "validation", "test"};
  return {"test", "val", "valid", "validation"};
}

// Drawing changes of images, and making them.

/// Throws InvalidArgumentError for what augmentation_from would refuse, and for crops of images that have
/// neither 1 nor 3 channels.
void check_augmentation(const Augmentation& augmentation, std::int64_t channels);

/// RandomResizedCrop's part of a picture, in whole pixels.
PictureBox draw_crop(double least_area, std::int64_t height, std::int64_t width, CounterRandom& random);

/// How one image is changed.
struct ImageChange {
  enum class Color { brightness, contrast, saturation };
  double degrees = 0;  // to the left
  std::int64_t down = 0, right = 0;
  bool mirrored = false;
  std::array<Color, 3> order = {Color::brightness, Color::contrast, Color::saturation};
  std::array<double, 3> factors = {1, 1, 1};  // of each Color; 1: as it is
};
/// nullptr: as it is.
ImageChange draw_change(const Augmentation& augmentation, std::int64_t channels, CounterRandom* random);

inline float scaled(std::uint8_t pixel) { return static_cast<float>(pixel) / 255.0F; }
/// Pixels u8 [C,H,W], changed, ÷ 255.
void write_image(const std::uint8_t* pixels, const Shape& shape, const ImageChange& change, float* image);
/// The same as sample `place` of a batch, ÷ 255 or, where the batch is u8, as they are.
void write_image(const std::uint8_t* pixels, const Shape& shape, const ImageChange& change,
                 const Tensor& samples, std::int64_t place);
/// Images that are moved, mirrored and cut still have whole pixels.
inline bool keeps_pixels(const Augmentation& a) {
  return a.most_degrees == 0 && a.brightness == 0 && a.contrast == 0 && a.saturation == 0;
}

}  // namespace kolo::models::detail
