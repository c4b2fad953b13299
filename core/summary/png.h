// Images as PNG files in memory.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace kolo::detail {

/// pixels: height × width × channels bytes; channels: 1 gray, 3 RGB, 4 RGBA. Each side is below 2^24.
std::string encode_png(std::span<const std::uint8_t> pixels, int height, int width, int channels);

}  // namespace kolo::detail
