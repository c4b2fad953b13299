#include <webp/decode.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/models/image_file_internal.h>

namespace kolo::models::detail {
namespace {

constexpr std::size_t kChunkHeader = 8;  // four letters and the size
constexpr std::size_t kFileHeader = 12;  // the chunk RIFF's, and "WEBP"

std::size_t chunk_size(std::string_view chunk) {
  std::size_t size = 0;
  for (std::size_t i = 0; i < 4; ++i) size |= std::size_t{static_cast<unsigned char>(chunk[4 + i])} << 8 * i;
  return size;
}

// 1 where there is none. The chunks of RIFF are padded to even sizes.
int orientation_of(std::string_view file) {
  constexpr std::string_view kPrefix("Exif\0\0", 6);  // of JPEG; some programs write it here, too
  for (std::size_t at = kFileHeader; at + kChunkHeader <= file.size();) {
    const std::string_view chunk = file.substr(at);
    const std::size_t size = chunk_size(chunk);
    if (chunk.starts_with("EXIF")) {
      const std::string_view exif = chunk.substr(kChunkHeader, size);
      return exif_orientation(exif.starts_with(kPrefix) ? exif.substr(kPrefix.size()) : exif);
    }
    at += kChunkHeader + size + size % 2;
  }
  return 1;
}

const char* text_of(VP8StatusCode status) {
  switch (status) {
    case VP8_STATUS_NOT_ENOUGH_DATA: return "the file ends within it";
    case VP8_STATUS_UNSUPPORTED_FEATURE: return "a feature that libwebp does not know";
    case VP8_STATUS_OUT_OF_MEMORY: return "no memory for libwebp";
    default: return "its stream of bits is wrong";
  }
}

}  // namespace

// libwebp decodes the picture whole, as Pillow has it do: with smoothing of the colours' edges.
Picture decode_webp(const std::string& bytes, const std::string& path, ImagePart part) {
  const auto* const data = reinterpret_cast<const std::uint8_t*>(bytes.data());
  const auto fail = [&](VP8StatusCode status) {
    throw DataLossError("{}: damaged WebP: {}", path, text_of(status));
  };
  WebPDecoderConfig config;
  if (WebPInitDecoderConfig(&config) == 0)
    throw InternalError("{}: the libwebp that runs is not the one that kolo was built with", path);
  const WebPBitstreamFeatures& found = config.input;
  if (const auto status = WebPGetFeatures(data, bytes.size(), &config.input); status != VP8_STATUS_OK)
    fail(status);
  check_pixels(found.height, found.width, path);
  if (found.has_animation != 0)
    throw InvalidArgumentError("{}: an animated WebP; a picture must be a single one", path);
  if (part == ImagePart::header) return {.height = found.height, .width = found.width, .rgb = {}};
  // A lossy stream that is cut within its last rows is no error to the library if all bits of them are there.
  if (chunk_size(bytes) > bytes.size() - kChunkHeader) fail(VP8_STATUS_NOT_ENOUGH_DATA);

  Picture picture{.height = found.height, .width = found.width, .rgb = {}};
  const int channels = found.has_alpha != 0 ? 4 : 3;
  picture.rgb.resize(static_cast<std::size_t>(channels * picture.height * picture.width));
  config.output.colorspace = channels == 4 ? MODE_RGBA : MODE_RGB;
  config.output.is_external_memory = 1;
  config.output.u.RGBA = {
      .rgba = picture.rgb.data(), .stride = channels * found.width, .size = picture.rgb.size()};
  const auto status = WebPDecode(data, bytes.size(), &config);
  WebPFreeDecBuffer(&config.output);
  if (status == VP8_STATUS_OUT_OF_MEMORY) throw ResourceExhaustedError("{}: no memory for libwebp", path);
  if (status != VP8_STATUS_OK) fail(status);
  if (channels == 4) lay_on_black(picture.rgb);
  return upright(std::move(picture), orientation_of(bytes));
}

}  // namespace kolo::models::detail
