#include <kolo/models/samples.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <limits>
#include <numbers>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/core/base/text.h>
#include <kolo/models/samples_internal.h>

namespace kolo::models {
namespace {

using detail::ImageChange;
using detail::scaled;

constexpr double kUsualShift = 4;  // pixels, as is usual on CIFAR-10 (He et al., arXiv:1512.03385, 4.2)
constexpr double kWidest = 4.0 / 3;

struct Item {
  const char* name;
  double usual, least, most;  // of its number
  void (*take)(Augmentation&, double);
};

// NaN: the item has no number.
constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
const Item kItems[] = {
    {"usual", kNone, 0, 0,
     [](Augmentation& all, double) {
       all.most_shift = static_cast<std::int64_t>(kUsualShift);
       all.mirrored = true;
       all.grey_mirrored = false;
     }},
    {"crop", 0.08, 1e-4, 1, [](Augmentation& all, double area) { all.least_area = area; }},
    {"rotate", 15, 0, 180, [](Augmentation& all, double degrees) { all.most_degrees = degrees; }},
    {"shift", kUsualShift, 0, 1024,
     [](Augmentation& all, double pixels) { all.most_shift = static_cast<std::int64_t>(pixels); }},
    {"flip", kNone, 0, 0, [](Augmentation& all, double) { all.mirrored = all.grey_mirrored = true; }},
    {"color", 0.2, 0, 10,
     [](Augmentation& all, double x) { all.brightness = all.contrast = all.saturation = x; }},
    {"brightness", 0.2, 0, 10, [](Augmentation& all, double x) { all.brightness = x; }},
    {"contrast", 0.2, 0, 10, [](Augmentation& all, double x) { all.contrast = x; }},
    {"saturation", 0.2, 0, 10, [](Augmentation& all, double x) { all.saturation = x; }},
};

void take_item(const std::string& text, Augmentation& all) {
  const std::size_t colon = std::min(text.find(':'), text.size());
  const std::string name = text.substr(0, colon);
  const Item* const item =
      std::find_if(std::begin(kItems), std::end(kItems), [&](const Item& one) { return name == one.name; });
  if (item == std::end(kItems))
    throw InvalidArgumentError(
        "\"{}\" is not valid; allowed, with commas between: usual, crop[:AREA], rotate[:DEGREES], "
        "shift[:PIXELS], flip, color[:X], brightness[:X], contrast[:X] and saturation[:X]",
        text);
  if (colon == text.size()) return item->take(all, item->usual);
  const auto number = parse_double(text.substr(colon + 1));
  if (std::isnan(item->usual))
    throw InvalidArgumentError("\"{}\" is not valid; {} has no number", text, name);
  if (!number || !(*number >= item->least && *number <= item->most) ||
      (name == "shift" && *number != std::floor(*number)))
    throw InvalidArgumentError("\"{}\" is not valid; the number must be {}from {:g} to {:g}", text,
                               name == "shift" ? "whole, " : "", item->least, item->most);
  item->take(all, *number);
}

// Moved and mirrored.
template <typename T>
void write_moved(const std::uint8_t* pixels, const Shape& shape, const ImageChange& change, T* image) {
  const std::int64_t height = shape.dim(1), width = shape.dim(2);
  for (std::int64_t c = 0; c < shape.dim(0); ++c, pixels += height * width)
    for (std::int64_t y = 0; y < height; ++y) {
      const std::int64_t row = y - change.down;
      for (std::int64_t x = 0; x < width; ++x) {
        const std::int64_t col = (change.mirrored ? width - 1 - x : x) - change.right;
        const bool inside = row >= 0 && row < height && col >= 0 && col < width;
        const std::uint8_t pixel = inside ? pixels[row * width + col] : 0;
        if constexpr (std::is_same_v<T, float>) *image++ = scaled(pixel);
        else *image++ = pixel;
      }
    }
}

// The four pixels around a place, and their weights; those outside of the image weigh nothing.
struct Around {
  std::int64_t places[4];
  float weights[4];
};

Around around(double y, double x, std::int64_t height, std::int64_t width) {
  const std::int64_t far = height + width;  // cut off behind the comma, what is below 0 would be rounded up
  const std::int64_t row = static_cast<std::int64_t>(y + static_cast<double>(far)) - far,
                     col = static_cast<std::int64_t>(x + static_cast<double>(far)) - far;
  const auto part_y = static_cast<float>(y - static_cast<double>(row)),
             part_x = static_cast<float>(x - static_cast<double>(col));
  const float above = row >= 0 && row < height ? 1 - part_y : 0,
              below = row >= -1 && row < height - 1 ? part_y : 0,
              before = col >= 0 && col < width ? 1 - part_x : 0,
              behind = col >= -1 && col < width - 1 ? part_x : 0;
  const std::int64_t top = std::clamp<std::int64_t>(row, 0, height - 1) * width,
                     bottom = std::clamp<std::int64_t>(row + 1, 0, height - 1) * width,
                     left = std::clamp<std::int64_t>(col, 0, width - 1),
                     right = std::clamp<std::int64_t>(col + 1, 0, width - 1);
  return {.places = {top + left, top + right, bottom + left, bottom + right},
          .weights = {above * before, above * behind, below * before, below * behind}};
}

// Turned about the middle, then moved and mirrored.
void write_turned(const std::uint8_t* pixels, const Shape& shape, const ImageChange& change, float* image) {
  const std::int64_t channels = shape.dim(0), height = shape.dim(1), width = shape.dim(2),
                     plane = height * width;
  const double angle = change.degrees * std::numbers::pi / 180, cosine = std::cos(angle),
               sine = std::sin(angle);
  const double middle_y = static_cast<double>(height - 1) / 2, middle_x = static_cast<double>(width - 1) / 2;
  for (std::int64_t y = 0; y < height; ++y)
    for (std::int64_t x = 0; x < width; ++x, ++image) {
      const std::int64_t row = y - change.down, col = (change.mirrored ? width - 1 - x : x) - change.right;
      const bool inside = row >= 0 && row < height && col >= 0 && col < width;
      const double down = static_cast<double>(row) - middle_y, right = static_cast<double>(col) - middle_x;
      const Around from = inside ? around(middle_y + sine * right + cosine * down,
                                          middle_x + cosine * right - sine * down, height, width)
                                 : Around{};
      for (std::int64_t c = 0; c < channels; ++c) {
        float sum = 0;
        for (int i = 0; i < 4; ++i)
          sum += from.weights[i] * static_cast<float>(pixels[c * plane + from.places[i]]);
        image[c * plane] = sum / 255.0F;
      }
    }
}

// torchvision's rgb_to_grayscale; that of one channel is the channel.
float grey(const float* pixel, std::int64_t channels, std::int64_t plane) {
  return channels == 3 ? 0.2989F * pixel[0] + 0.587F * pixel[plane] + 0.114F * pixel[2 * plane] : pixel[0];
}

// image · factor + other · (1 − factor), within 0 … 1.
void change_color(ImageChange::Color color, float factor, std::int64_t channels, std::int64_t plane,
                  float* image) {
  using Color = ImageChange::Color;
  if (color == Color::saturation) {
    if (channels != 3) return;
    for (std::int64_t i = 0; i < plane; ++i) {
      const float other = (1 - factor) * grey(image + i, channels, plane);
      for (std::int64_t c = 0; c < channels; ++c)
        image[c * plane + i] = std::clamp(factor * image[c * plane + i] + other, 0.0F, 1.0F);
    }
    return;
  }
  double sum = 0;
  if (color == Color::contrast)
    for (std::int64_t i = 0; i < plane; ++i) sum += grey(image + i, channels, plane);
  const float other = (1 - factor) * static_cast<float>(sum / static_cast<double>(plane));
  for (std::int64_t i = 0; i < channels * plane; ++i)
    image[i] = std::clamp(factor * image[i] + other, 0.0F, 1.0F);
}

}  // namespace

Augmentation augmentation_from(std::string_view text) {
  Augmentation all;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    take_item(std::string(text.substr(begin, end - begin)), all);
    begin = end + 1;
  }
  return all;
}

}  // namespace kolo::models

namespace kolo::models::detail {

void check_augmentation(const Augmentation& augmentation, std::int64_t channels) {
  if (augmentation.most_shift < 0)
    throw InvalidArgumentError("images shifted by at most {} pixels; it must be at least 0",
                               augmentation.most_shift);
  if (!(augmentation.least_area >= 0 && augmentation.least_area <= 1))
    throw InvalidArgumentError("crops of at least {} of the area; it must be above 0 and at most 1",
                               augmentation.least_area);
  if (!(augmentation.most_degrees >= 0 && augmentation.most_degrees <= 180))
    throw InvalidArgumentError("images turned by at most {} degrees; it must be 0 to 180",
                               augmentation.most_degrees);
  for (const double x : {augmentation.brightness, augmentation.contrast, augmentation.saturation})
    if (!(x >= 0 && std::isfinite(x)))
      throw InvalidArgumentError("factors of colours that differ by {} from 1; it must be at least 0", x);
  if (augmentation.least_area > 0 && channels != 1 && channels != 3)
    throw InvalidArgumentError("crops of images of {} channels; there must be 1 or 3", channels);
}

// As RandomResizedCrop.get_params: ten tries, then the middle.
PictureBox draw_crop(double least_area, std::int64_t height, std::int64_t width, CounterRandom& random) {
  const auto h = static_cast<double>(height), w = static_cast<double>(width);
  for (int i = 0; i < 10; ++i) {
    const double area = h * w * random.uniform(least_area, 1);
    const double ratio = std::exp(random.uniform(-std::log(kWidest), std::log(kWidest)));
    const double width_of = std::nearbyint(std::sqrt(area * ratio)),
                 height_of = std::nearbyint(std::sqrt(area / ratio));
    if (width_of < 1 || height_of < 1 || width_of > w || height_of > h) continue;
    const auto place = [&](double free) {
      return static_cast<double>(random.below(static_cast<std::uint64_t>(free) + 1));
    };
    const double top = place(h - height_of), left = place(w - width_of);
    return {.top = top, .left = left, .height = height_of, .width = width_of};
  }
  const double height_of = std::min(h, std::nearbyint(w * kWidest)),
               width_of = std::min(w, std::nearbyint(h * kWidest));
  return {.top = std::floor((h - height_of) / 2),
          .left = std::floor((w - width_of) / 2),
          .height = height_of,
          .width = width_of};
}

ImageChange draw_change(const Augmentation& augmentation, std::int64_t channels, CounterRandom* random) {
  ImageChange change;
  if (random == nullptr) return change;
  const auto shift = [&] {
    return static_cast<std::int64_t>(
               random->below(static_cast<std::uint64_t>(2 * augmentation.most_shift + 1))) -
           augmentation.most_shift;
  };
  change.down = shift();
  change.right = shift();
  change.mirrored =
      augmentation.mirrored && (channels > 1 || augmentation.grey_mirrored) && random->below(2) == 1;
  if (augmentation.most_degrees > 0)
    change.degrees = random->uniform(-augmentation.most_degrees, augmentation.most_degrees);
  const double most[] = {augmentation.brightness, augmentation.contrast, augmentation.saturation};
  if (*std::max_element(std::begin(most), std::end(most)) == 0) return change;
  for (std::size_t i = change.order.size(); i > 1; --i)
    std::swap(change.order[i - 1], change.order[random->below(i)]);
  for (std::size_t i = 0; i < change.factors.size(); ++i)
    if (most[i] > 0) change.factors[i] = random->uniform(std::max(0.0, 1 - most[i]), 1 + most[i]);
  return change;
}

void write_image(const std::uint8_t* pixels, const Shape& shape, const ImageChange& change, float* image) {
  const bool moved = change.down != 0 || change.right != 0 || change.mirrored;
  if (change.degrees != 0) write_turned(pixels, shape, change, image);
  else if (moved) write_moved(pixels, shape, change, image);
  else std::transform(pixels, pixels + shape.elements(), image, scaled);
  for (const ImageChange::Color color : change.order)
    if (const double factor = change.factors[static_cast<std::size_t>(color)]; factor != 1)
      change_color(color, static_cast<float>(factor), shape.dim(0), shape.dim(1) * shape.dim(2), image);
}

void write_image(const std::uint8_t* pixels, const Shape& shape, const ImageChange& change,
                 const Tensor& samples, std::int64_t place) {
  const std::int64_t from = place * shape.elements();
  if (samples.dtype() == DType::u8) write_moved(pixels, shape, change, samples.data<std::uint8_t>() + from);
  else write_image(pixels, shape, change, samples.data<float>() + from);
}

}  // namespace kolo::models::detail
