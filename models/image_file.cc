#include <kolo/models/pictures.h>

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string>

#include <kolo/core/base/error.h>
#include <kolo/core/base/input_file.h>
#include <kolo/core/base/text.h>
#include <kolo/models/image_file_internal.h>

namespace kolo::models {
namespace {

using detail::ImagePart;
using detail::LeastSides;
using detail::Sides;

constexpr std::uint64_t kMostImageBytes = std::uint64_t{1} << 29;
constexpr std::uint64_t kUsualHeaderBytes = std::uint64_t{1} << 16;

// New pixel i is the sum over k of weights[i · taps + k] · old pixel first[i] + k.
struct Resampling {
  std::vector<std::int64_t> first;
  std::vector<float> weights;
  std::int64_t taps = 0;
};

// From the old pixels [begin, begin + size), whose neighbours count, too, as far as they are in [low, high).
Resampling resampling(double begin, double size, std::int64_t low, std::int64_t high, std::int64_t count) {
  const double scale = size / static_cast<double>(count), reach = std::max(scale, 1.0);
  Resampling made;
  made.taps = std::min(high - low, 2 * static_cast<std::int64_t>(std::ceil(reach)) + 1);
  made.weights.assign(static_cast<std::size_t>(count * made.taps), 0);
  for (std::int64_t i = 0; i < count; ++i) {
    const double centre = begin + (static_cast<double>(i) + 0.5) * scale;
    const auto first = static_cast<std::int64_t>(std::floor(centre - reach + 0.5));
    const std::int64_t from = std::clamp(first, low, high - made.taps);
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

Picture decoded(const std::string& bytes, const std::string& name, const LeastSides& least, ImagePart part) {
  if (bytes.starts_with("\x89PNG\r\n\x1a\n")) return detail::decode_png(bytes, name, part);
  if (bytes.starts_with("\xff\xd8\xff")) return detail::decode_jpeg(bytes, name, least, part);
  if (bytes.starts_with("RIFF") && bytes.size() >= 12 && bytes.compare(8, 4, "WEBP") == 0)
    return detail::decode_webp(bytes, name, part);
  throw InvalidArgumentError("{}: neither a PNG nor a JPEG nor a WebP", name);
}

std::uint8_t rounded(float value) {
  const float half_above = std::clamp(value, 0.0F, 255.0F) + 0.5F;  // std::lround would be a call
  return static_cast<std::uint8_t>(half_above);
}

void resample(const Picture& picture, const Resampling& across, const Resampling& down, std::int64_t channels,
              std::int64_t height, std::int64_t width, std::uint8_t* pixels) {
  // First along the rows, of which only those are needed that a new one is made of. Four numbers a pixel fill
  // a vector register.
  const std::int64_t top = down.first.front(), below = down.first.back() + down.taps;
  const std::int64_t left = across.first.front(), right = across.first.back() + across.taps;
  std::vector<float> narrow(static_cast<std::size_t>((below - top) * width * 3)),
      old_row(static_cast<std::size_t>(4 * (right - left)));
  float* to = narrow.data();
  for (std::int64_t y = top; y < below; ++y) {
    const std::uint8_t* old = picture.rgb.data() + 3 * (y * picture.width + left);
    for (std::size_t i = 0; i < old_row.size(); i += 4, old += 3)
      for (std::size_t c = 0; c < 3; ++c) old_row[i + c] = old[c];
    const float* weight = across.weights.data();
    for (std::int64_t x = 0; x < width; ++x) {
      const float* from = old_row.data() + 4 * (across.first[static_cast<std::size_t>(x)] - left);
      float rgb[4] = {};
      for (std::int64_t k = 0; k < across.taps; ++k, from += 4, ++weight)
        for (int c = 0; c < 4; ++c) rgb[c] += *weight * from[c];
      to = std::copy_n(rgb, 3, to);
    }
  }
  // Then down them, a whole row at a time.
  std::vector<float> row(static_cast<std::size_t>(3 * width));
  for (std::int64_t y = 0; y < height; ++y) {
    std::fill(row.begin(), row.end(), 0.0F);
    const float* from = narrow.data() + 3 * (down.first[static_cast<std::size_t>(y)] - top) * width;
    for (std::int64_t k = 0; k < down.taps; ++k, from += 3 * width) {
      const float weight = down.weights[static_cast<std::size_t>(y * down.taps + k)];
      for (std::size_t i = 0; i < row.size(); ++i) row[i] += weight * from[i];
    }
    const float* rgb = row.data();
    for (std::int64_t at = y * width; at < (y + 1) * width; ++at, rgb += 3) {
      if (channels == 1) pixels[at] = rounded(0.299F * rgb[0] + 0.587F * rgb[1] + 0.114F * rgb[2]);
      else
        for (int c = 0; c < 3; ++c) pixels[c * height * width + at] = rounded(rgb[c]);
    }
  }
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
  const auto least = [&](const Sides&) { return Sides(height, width); };
  return decoded(InputFile(name).read_all(kMostImageBytes), name, least, ImagePart::all);
}

PicturePart read_image_part(const std::filesystem::path& path, std::int64_t height, std::int64_t width,
                            const std::function<PictureBox(std::int64_t, std::int64_t)>& choose) {
  const std::string name = path.string();
  PicturePart part;
  Sides whole;
  const auto least = [&](const Sides& sides) {
    whole = sides;
    part.box = choose(sides.first, sides.second);
    const auto enlarged = [](std::int64_t wanted, std::int64_t side, double of_box) {
      return static_cast<std::int64_t>(
          std::ceil(static_cast<double>(wanted) * static_cast<double>(side) / of_box));
    };
    return Sides(enlarged(height, sides.first, part.box.height),
                 enlarged(width, sides.second, part.box.width));
  };
  part.picture = decoded(InputFile(name).read_all(kMostImageBytes), name, least, ImagePart::all);
  if (whole.first == 0)
    least({part.picture.height, part.picture.width});  // of a decoder that makes none smaller
  const double down = static_cast<double>(part.picture.height) / static_cast<double>(whole.first),
               right = static_cast<double>(part.picture.width) / static_cast<double>(whole.second);
  part.box.top *= down, part.box.height *= down;
  part.box.left *= right, part.box.width *= right;
  return part;
}

void check_image(const std::filesystem::path& path) {
  const std::string name = path.string();
  InputFile file(name);
  std::string beginning(std::min<std::uint64_t>(file.bytes(), kUsualHeaderBytes), '\0');
  file.read(0, beginning.data(), beginning.size());
  try {
    decoded(beginning, name, {}, ImagePart::header);
  } catch (const DataLossError&) {
    if (beginning.size() == file.bytes()) throw;
    decoded(file.read_all(kMostImageBytes), name, {}, ImagePart::header);  // it may be longer than others
  }
}

void resize_and_crop(const Picture& picture, std::int64_t channels, std::int64_t height, std::int64_t width,
                     std::uint8_t* pixels) {
  const auto h = static_cast<double>(picture.height), w = static_cast<double>(picture.width);
  const double shrink = std::min(h / static_cast<double>(height), w / static_cast<double>(width));
  const double rows = shrink * static_cast<double>(height), cols = shrink * static_cast<double>(width);
  resample(picture, resampling((w - cols) / 2, cols, 0, picture.width, width),
           resampling((h - rows) / 2, rows, 0, picture.height, height), channels, height, width, pixels);
}

void resize_part(const Picture& picture, const PictureBox& box, std::int64_t channels, std::int64_t height,
                 std::int64_t width, std::uint8_t* pixels) {
  const auto of_box = [](double begin, double size, std::int64_t length, std::int64_t count) {
    const auto low = static_cast<std::int64_t>(std::floor(begin)),
               high = std::min(length, static_cast<std::int64_t>(std::ceil(begin + size)));
    return resampling(begin, size, low, high, count);
  };
  resample(picture, of_box(box.left, box.width, picture.width, width),
           of_box(box.top, box.height, picture.height, height), channels, height, width, pixels);
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
