#include <kolo/models/data.h>

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string>
#include <string_view>

#include <kolo/core/base/error.h>
#include <kolo/core/base/input_file.h>
#include <kolo/core/base/text.h>
#include <kolo/models/image_file_internal.h>

namespace kolo::models {
namespace {

using detail::ImagePart;

constexpr std::uint64_t kMostImageBytes = std::uint64_t{1} << 29;
constexpr std::uint64_t kUsualHeaderBytes = std::uint64_t{1} << 16;

// New pixel i is the sum over k of weights[i · taps + k] · old pixel first[i] + k.
struct Resampling {
  std::vector<std::int64_t> first;
  std::vector<float> weights;
  std::int64_t taps = 0;
};

// From the old pixels [begin, begin + size) of `length`, of which neighbours beyond that range count, too.
Resampling resampling(double begin, double size, std::int64_t length, std::int64_t count) {
  const double scale = size / static_cast<double>(count), reach = std::max(scale, 1.0);
  Resampling made;
  made.taps = std::min(length, 2 * static_cast<std::int64_t>(std::ceil(reach)) + 1);
  made.weights.assign(static_cast<std::size_t>(count * made.taps), 0);
  for (std::int64_t i = 0; i < count; ++i) {
    const double centre = begin + (static_cast<double>(i) + 0.5) * scale;
    const auto first = static_cast<std::int64_t>(std::floor(centre - reach + 0.5));
    const std::int64_t from = std::clamp<std::int64_t>(first, 0, length - made.taps);
    float* const weights = made.weights.data() + i * made.taps;
    double sum = 0;
    for (std::int64_t k = 0; k < made.taps; ++k) {
      const double distance = std::abs(static_cast<double>(from + k) + 0.5 - centre) / reach;
      weights[k] = static_cast<float>(std::max(0.0, 1 - distance));
      sum += weights[k];
    }
    for (std::int64_t k = 0; k < made.taps; ++k) weights[k] = static_cast<float>(weights[k] / sum);
    made.first.push_back(from);
  }
  return made;
}

Picture decoded(const std::string& bytes, const std::string& name, std::int64_t height, std::int64_t width,
                ImagePart part) {
  if (bytes.starts_with("\x89PNG\r\n\x1a\n")) return detail::decode_png(bytes, name, part);
  if (bytes.starts_with("\xff\xd8\xff")) return detail::decode_jpeg(bytes, name, height, width, part);
  if (bytes.starts_with("RIFF") && std::string_view(bytes).substr(8).starts_with("WEBP"))
    return detail::decode_webp(bytes, name, part);
  throw InvalidArgumentError("{}: neither a PNG nor a JPEG nor a WebP", name);
}

std::uint8_t rounded(float value) {
  return static_cast<std::uint8_t>(std::lround(std::clamp(value, 0.0F, 255.0F)));
}

}  // namespace

std::string image_endings() {
  const auto* const last = std::end(kImageEndings) - 1;
  return fmt::format("{} or {}", fmt::join(std::begin(kImageEndings), last, ", "), *last);
}

bool is_image_name(const std::filesystem::path& path) {
  const std::string ending = lower_case(path.extension().string());
  return std::find(std::begin(kImageEndings), std::end(kImageEndings), ending) != std::end(kImageEndings);
}

Picture read_image(const std::filesystem::path& path, std::int64_t height, std::int64_t width) {
  const std::string name = path.string();
  return decoded(InputFile(name).read_all(kMostImageBytes), name, height, width, ImagePart::all);
}

void check_image(const std::filesystem::path& path) {
  const std::string name = path.string();
  InputFile file(name);
  std::string beginning(std::min<std::uint64_t>(file.bytes(), kUsualHeaderBytes), '\0');
  file.read(0, beginning.data(), beginning.size());
  try {
    decoded(beginning, name, 1, 1, ImagePart::header);
  } catch (const DataLossError&) {
    if (beginning.size() == file.bytes()) throw;
    decoded(file.read_all(kMostImageBytes), name, 1, 1, ImagePart::header);  // it may be longer than others
  }
}

void resize_and_crop(const Picture& picture, std::int64_t channels, std::int64_t height, std::int64_t width,
                     std::uint8_t* pixels) {
  const auto h = static_cast<double>(picture.height), w = static_cast<double>(picture.width);
  const double shrink = std::min(h / static_cast<double>(height), w / static_cast<double>(width));
  const double rows = shrink * static_cast<double>(height), cols = shrink * static_cast<double>(width);
  const Resampling across = resampling((w - cols) / 2, cols, picture.width, width),
                   down = resampling((h - rows) / 2, rows, picture.height, height);
  // First along the rows, of which only those are needed that a new one is made of.
  const std::int64_t top = down.first.front(), below = down.first.back() + down.taps;
  std::vector<float> narrow(static_cast<std::size_t>((below - top) * width * 3));
  for (std::int64_t y = top; y < below; ++y)
    for (std::int64_t x = 0; x < width; ++x) {
      const std::uint8_t* from =
          picture.rgb.data() + 3 * (y * picture.width + across.first[static_cast<std::size_t>(x)]);
      float* const to = narrow.data() + 3 * ((y - top) * width + x);
      for (std::int64_t k = 0; k < across.taps; ++k, from += 3)
        for (int c = 0; c < 3; ++c)
          to[c] += across.weights[static_cast<std::size_t>(x * across.taps + k)] * from[c];
    }
  for (std::int64_t y = 0; y < height; ++y)
    for (std::int64_t x = 0; x < width; ++x) {
      float rgb[3] = {};
      const float* from = narrow.data() + 3 * ((down.first[static_cast<std::size_t>(y)] - top) * width + x);
      for (std::int64_t k = 0; k < down.taps; ++k, from += 3 * width)
        for (int c = 0; c < 3; ++c)
          rgb[c] += down.weights[static_cast<std::size_t>(y * down.taps + k)] * from[c];
      const std::int64_t at = y * width + x;
      if (channels == 1) pixels[at] = rounded(0.299F * rgb[0] + 0.587F * rgb[1] + 0.114F * rgb[2]);
      else
        for (int c = 0; c < 3; ++c) pixels[c * height * width + at] = rounded(rgb[c]);
    }
}

}  // namespace kolo::models

namespace kolo::models::detail {

void check_pixels(std::int64_t height, std::int64_t width, const std::string& path) {
  if (height < 1 || width < 1 || height > kMostPixels / width)
    throw InvalidArgumentError("{}: {} x {} pixels; it must be 1 to {}", path, width, height, kMostPixels);
}

void lay_on_black(std::vector<std::uint8_t>& pixels) {
  const std::size_t count = pixels.size() / 4;
  for (std::size_t i = 0; i < count; ++i) {
    const int alpha = pixels[4 * i + 3];
    for (std::size_t c = 0; c < 3; ++c)
      pixels[3 * i + c] = static_cast<std::uint8_t>((pixels[4 * i + c] * alpha + 127) / 255);
  }
  pixels.resize(3 * count);
}

// EXIF 2.3, 4.6: a TIFF header, and the first directory behind it.
int exif_orientation(std::string_view tiff) {
  constexpr unsigned kOrientation = 0x0112;
  const bool little = tiff.starts_with("II");
  const auto number = [&](std::size_t at, std::size_t count) {
    unsigned value = 0;
    for (std::size_t i = 0; i < count && at + i < tiff.size(); ++i)
      value |= unsigned{static_cast<unsigned char>(tiff[at + i])} << 8 * (little ? i : count - 1 - i);
    return value;
  };
  const std::size_t directory = number(4, 4);
  for (std::size_t i = 0; i < number(directory, 2); ++i) {
    const std::size_t entry = directory + 2 + 12 * i;
    if (entry + 12 > tiff.size()) break;
    if (number(entry, 2) != kOrientation) continue;
    const unsigned found = number(entry + 8, 2);
    return found >= 1 && found <= 8 ? static_cast<int>(found) : 1;
  }
  return 1;
}

Picture upright(Picture picture, int orientation) {
  if (orientation == 1) return picture;
  const bool turned = orientation >= 5;  // rows become columns
  const bool from_below = orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
  const bool from_right = orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
  Picture made{.height = turned ? picture.width : picture.height,
               .width = turned ? picture.height : picture.width,
               .rgb = std::vector<std::uint8_t>(picture.rgb.size())};
  std::uint8_t* to = made.rgb.data();
  for (std::int64_t y = 0; y < made.height; ++y)
    for (std::int64_t x = 0; x < made.width; ++x) {
      std::int64_t row = turned ? x : y, col = turned ? y : x;
      if (from_below) row = picture.height - 1 - row;
      if (from_right) col = picture.width - 1 - col;
      to = std::copy_n(picture.rgb.data() + 3 * (row * picture.width + col), 3, to);
    }
  return made;
}

}  // namespace kolo::models::detail
