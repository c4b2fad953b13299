// The decoders of read_image, one for each library. libpng and libjpeg leave them by longjmp where something
// is wrong: each keeps what has a destructor outside of the function that they leave.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <kolo/models/pictures.h>

namespace kolo::models::detail {

inline constexpr std::int64_t kMostPixels = 100'000'000;

/// Throws InvalidArgumentError for more than kMostPixels, before memory is taken.
void check_pixels(std::int64_t height, std::int64_t width, const std::string& path);

/// [pixels, 4] with alpha becomes [pixels, 3] on black, in the same memory.
void lay_on_black(std::vector<std::uint8_t>& pixels);

/// How a picture lies in its file: 1 to 8 (EXIF 2.3, 4.6.4). tiff: the bytes of EXIF, from the TIFF header
/// on. 1 for bytes that are not so.
int exif_orientation(std::string_view tiff);
/// The picture as it is to be seen.
Picture upright(Picture picture, int orientation);

/// Height and width.
using Sides = std::pair<std::int64_t, std::int64_t>;
/// Of a picture, as it is to be seen → those that it must have at least where it comes smaller.
using LeastSides = std::function<Sides(const Sides& whole)>;

/// What of a file is decoded: its header alone gives a picture without pixels.
enum class ImagePart { header, all };

/// bytes: of the whole file, or its beginning for a header. Errors as read_image has them.
Picture decode_png(const std::string& bytes, const std::string& path, ImagePart part);
/// least: is called once unless the header alone is decoded.
Picture decode_jpeg(const std::string& bytes, const std::string& path, const LeastSides& least,
                    ImagePart part);
Picture decode_webp(const std::string& bytes, const std::string& path, ImagePart part);

}  // namespace kolo::models::detail
