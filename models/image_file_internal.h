// The decoders of read_image, one for each library. The libraries leave them by longjmp where something is
// wrong: each keeps what has a destructor outside of the function that they leave.
#pragma once

#include <cstdint>
#include <string>

#include <kolo/models/image_file.h>

namespace kolo::models::detail {

inline constexpr std::int64_t kMostPixels = 100'000'000;

/// Throws InvalidArgumentError for more than kMostPixels, before memory is taken.
void check_pixels(std::int64_t height, std::int64_t width, const std::string& path);

/// bytes: of the whole file. Errors as read_image has them.
Picture decode_png(const std::string& bytes, const std::string& path);
Picture decode_jpeg(const std::string& bytes, const std::string& path, std::int64_t height,
                    std::int64_t width);

}  // namespace kolo::models::detail
