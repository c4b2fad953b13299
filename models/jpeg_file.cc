#include <csetjmp>
#include <cstddef>
#include <cstdint>
#include <cstdio>  // jpeglib.h needs it before itself

#include <string_view>
#include <utility>
#include <vector>

#include <jerror.h>
#include <jpeglib.h>

#include <kolo/core/base/error.h>
#include <kolo/models/image_file_internal.h>

namespace kolo::models::detail {
namespace {

constexpr unsigned kMostExif = 0xffff;
// Each scan of a progressive file passes over the whole picture, and a few bytes make one.
constexpr int kMostScans = 100;

void limit_scans(j_common_ptr jpeg);

struct JpegDecoder {
  JpegDecoder() {
    jpeg.err = jpeg_std_error(&errors);
    progress.progress_monitor = limit_scans;
  }
  JpegDecoder(const JpegDecoder&) = delete;
  JpegDecoder& operator=(const JpegDecoder&) = delete;
  ~JpegDecoder() { jpeg_destroy_decompress(&jpeg); }

  jpeg_decompress_struct jpeg{};
  jpeg_error_mgr errors{};
  jpeg_progress_mgr progress{};
  std::jmp_buf left;
  char error[JMSG_LENGTH_MAX] = "";
};

JpegDecoder& of(j_common_ptr jpeg) { return *static_cast<JpegDecoder*>(jpeg->client_data); }

[[noreturn]] void leave(j_common_ptr jpeg) {
  JpegDecoder& decoder = of(jpeg);
  decoder.errors.format_message(jpeg, decoder.error);
  longjmp(decoder.left, 1);
}

void limit_scans(j_common_ptr jpeg) {
  if (reinterpret_cast<j_decompress_ptr>(jpeg)->input_scan_number <= kMostScans) return;
  JpegDecoder& decoder = of(jpeg);
  std::snprintf(decoder.error, sizeof decoder.error, "more than %d scans", kMostScans);
  longjmp(decoder.left, 1);
}

// A warning (level −1) is damage that the library would paint over with grey, but for those about what it
// may well pass over; above are traces.
void take_message(j_common_ptr jpeg, int level) {
  const int code = of(jpeg).errors.msg_code;
  const bool harmless = code == JWRN_EXTRANEOUS_DATA || code == JWRN_ADOBE_XFORM || code == JWRN_JFIF_MAJOR ||
                        code == JWRN_NOT_SEQUENTIAL;  // a field that sequential files do not use
  if (level < 0 && !harmless) leave(jpeg);
}

// False where the library has found an error.
bool read_header(JpegDecoder& decoder, const std::string& bytes) {
  if (setjmp(decoder.left) != 0) return false;
  jpeg_create_decompress(&decoder.jpeg);
  decoder.jpeg.client_data = &decoder;
  jpeg_mem_src(&decoder.jpeg, reinterpret_cast<const unsigned char*>(bytes.data()),
               static_cast<unsigned long>(bytes.size()));
  jpeg_save_markers(&decoder.jpeg, JPEG_APP0 + 1, kMostExif);
  decoder.jpeg.progress = &decoder.progress;
  jpeg_read_header(&decoder.jpeg, TRUE);
  return true;
}

bool start(JpegDecoder& decoder) {
  if (setjmp(decoder.left) != 0) return false;
  jpeg_start_decompress(&decoder.jpeg);
  return true;
}

// As Pillow: files of CMYK hold what is left of the light, as Adobe writes it.
void cmyk_to_rgb(const std::uint8_t* cmyk, std::size_t pixels, std::uint8_t* rgb) {
  for (std::size_t i = 0; i < pixels; ++i)
    for (std::size_t channel = 0; channel < 3; ++channel)
      rgb[3 * i + channel] = static_cast<std::uint8_t>((cmyk[4 * i + channel] * cmyk[4 * i + 3] + 127) / 255);
}

// cmyk: room for a row of four channels; empty where the library gives three.
bool read_rows(JpegDecoder& decoder, Picture& picture, std::vector<std::uint8_t>& cmyk) {
  if (setjmp(decoder.left) != 0) return false;
  jpeg_decompress_struct& jpeg = decoder.jpeg;
  while (jpeg.output_scanline < jpeg.output_height) {
    std::uint8_t* const rgb = picture.rgb.data() + std::size_t{3} * jpeg.output_scanline * jpeg.output_width;
    JSAMPROW row = cmyk.empty() ? rgb : cmyk.data();
    jpeg_read_scanlines(&jpeg, &row, 1);
    if (!cmyk.empty()) cmyk_to_rgb(cmyk.data(), jpeg.output_width, rgb);
  }
  jpeg_finish_decompress(&jpeg);
  return true;
}

// 1 where there is none.
int orientation_of(const jpeg_decompress_struct& jpeg) {
  constexpr std::string_view kExif("Exif\0\0", 6);
  for (const auto* marker = jpeg.marker_list; marker != nullptr; marker = marker->next) {
    const std::string_view bytes(reinterpret_cast<const char*>(marker->data), marker->data_length);
    if (bytes.starts_with(kExif)) return exif_orientation(bytes.substr(kExif.size()));
  }
  return 1;
}

}  // namespace

Picture decode_jpeg(const std::string& bytes, const std::string& path, const LeastSides& least,
                    ImagePart part) {
  JpegDecoder decoder;
  decoder.jpeg.client_data = &decoder;
  decoder.errors.error_exit = leave;
  decoder.errors.emit_message = take_message;
  const auto fail = [&] { throw DataLossError("{}: damaged JPEG: {}", path, decoder.error); };
  if (!read_header(decoder, bytes)) fail();
  jpeg_decompress_struct& jpeg = decoder.jpeg;
  check_pixels(jpeg.image_height, jpeg.image_width, path);
  if (part == ImagePart::header) return {.height = jpeg.image_height, .width = jpeg.image_width, .rgb = {}};
  const bool four = jpeg.jpeg_color_space == JCS_CMYK || jpeg.jpeg_color_space == JCS_YCCK;
  jpeg.out_color_space = four ? JCS_CMYK : JCS_RGB;
  const int orientation = orientation_of(jpeg);
  const bool turned = orientation >= 5;
  Sides whole(jpeg.image_height, jpeg.image_width);
  if (turned) std::swap(whole.first, whole.second);
  auto [height, width] = least(whole);
  if (turned) std::swap(height, width);
  // Of a large picture the transform itself gives a smaller one: 1/2, 1/4 or 1/8 of its sides.
  for (jpeg.scale_denom = 1; jpeg.scale_denom < 8; jpeg.scale_denom *= 2)
    if (jpeg.image_height / (2 * jpeg.scale_denom) < height ||
        jpeg.image_width / (2 * jpeg.scale_denom) < width)
      break;
  jpeg.scale_num = 1;
  if (!start(decoder)) fail();
  Picture picture{.height = jpeg.output_height, .width = jpeg.output_width, .rgb = {}};
  picture.rgb.resize(static_cast<std::size_t>(3 * picture.height * picture.width));
  std::vector<std::uint8_t> cmyk(four ? std::size_t{4} * jpeg.output_width : 0);
  if (!read_rows(decoder, picture, cmyk)) fail();
  return upright(std::move(picture), orientation);
}

}  // namespace kolo::models::detail
