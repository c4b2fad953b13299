#include <kolo/core/summary/png.h>

#include <isa-l/crc.h>
#include <isa-l/igzip_lib.h>

#include <array>
#include <cstddef>
#include <string_view>
#include <vector>

#include <kolo/core/base/error.h>

namespace kolo::detail {
namespace {

void append_big_endian(std::string& bytes, std::uint32_t number) {
  for (const int shift : {24, 16, 8, 0}) bytes += static_cast<char>((number >> shift) & 0xff);
}

// Length, kind, content, and the CRC-32 of the last two.
void append_chunk(std::string& png, std::string_view kind, std::string_view content) {
  append_big_endian(png, static_cast<std::uint32_t>(content.size()));
  const std::size_t start = png.size();
  png += kind;
  png += content;
  append_big_endian(png, crc32_gzip_refl(0, reinterpret_cast<const unsigned char*>(png.data()) + start,
                                         png.size() - start));
}

// As a zlib stream (RFC 1950).
std::string deflated(std::string& bytes) {
  std::vector<std::uint8_t> work(ISAL_DEF_LVL1_DEFAULT);
  isal_zstream stream;
  isal_deflate_init(&stream);
  stream.level = 1;
  stream.level_buf = work.data();
  stream.level_buf_size = static_cast<std::uint32_t>(work.size());
  stream.gzip_flag = IGZIP_ZLIB;
  stream.end_of_stream = 1;
  stream.next_in = reinterpret_cast<std::uint8_t*>(bytes.data());
  stream.avail_in = static_cast<std::uint32_t>(bytes.size());
  std::string out;
  std::array<std::uint8_t, 1 << 16> piece;
  do {
    stream.next_out = piece.data();
    stream.avail_out = static_cast<std::uint32_t>(piece.size());
    if (const int code = isal_deflate(&stream); code != COMP_OK)
      throw InternalError("isal_deflate returned {}", code);
    out.append(reinterpret_cast<const char*>(piece.data()), piece.size() - stream.avail_out);
  } while (stream.internal_state.state != ZSTATE_END);
  return out;
}

}  // namespace

// PNG, W3C 2003: signature, header, the rows, the end.
std::string encode_png(std::span<const std::uint8_t> pixels, int height, int width, int channels) {
  std::string png = "\x89PNG\r\n\x1a\n";
  std::string header;
  append_big_endian(header, static_cast<std::uint32_t>(width));
  append_big_endian(header, static_cast<std::uint32_t>(height));
  const char colour = channels == 1 ? 0 : channels == 3 ? 2 : 6;
  header += std::string{8, colour, 0, 0, 0};  // 8 bits a channel, deflate, filters by row, not interlaced
  append_chunk(png, "IHDR", header);
  const std::size_t row = static_cast<std::size_t>(width) * static_cast<std::size_t>(channels);
  std::string rows;
  rows.reserve((row + 1) * static_cast<std::size_t>(height));
  for (std::size_t y = 0; y < static_cast<std::size_t>(height); ++y) {
    rows += '\0';  // no filter
    rows.append(reinterpret_cast<const char*>(pixels.data()) + y * row, row);
  }
  append_chunk(png, "IDAT", deflated(rows));
  append_chunk(png, "IEND", "");
  return png;
}

}  // namespace kolo::detail
