// Pixels of PNG and JPEG files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

namespace kolo::models {

/// Red, green and blue of each pixel, row by row.
struct Picture {
  std::int64_t height = 0, width = 0;
  std::vector<std::uint8_t> rgb;  // [height, width, 3]
};

/// True for names that end in .png, .jpg or .jpeg, in letters of any size.
bool is_image_name(const std::filesystem::path& path);

/// The picture of a PNG or JPEG file, told by its content; what is transparent lies on black, 16 bits become
/// their upper 8, CMYK becomes RGB as in Pillow, and EXIF's orientation is applied. A JPEG may come smaller,
/// by a power of two, as long as both sides stay at least as long as `height` and `width`: that is faster.
/// Each error is one line that begins with the path: InvalidArgumentError for another format and for more
/// than a hundred million pixels; DataLossError for a damaged or truncated file, of which no part is taken;
/// what InputFile throws.
Picture read_image(const std::filesystem::path& path, std::int64_t height, std::int64_t width);

/// Throws what read_image would throw, as far as the file's header tells: it reads and decodes no more.
void check_image(const std::filesystem::path& path);

/// The middle of `picture`, as large as the sides' ratio of `height` × `width` allows, brought to that size:
/// the mean of the pixels below each new one weighted by a triangle, as wide as the picture shrinks
/// ("bilinear with antialiasing" of Pillow and torchvision). Written to pixels [3,H,W], or [1,H,W],
/// brightness by ITU-R BT.601, for one channel.
void resize_and_crop(const Picture& picture, std::int64_t channels, std::int64_t height, std::int64_t width,
                     std::uint8_t* pixels);

}  // namespace kolo::models
