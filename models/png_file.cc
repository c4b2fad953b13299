#include <png.h>

#include <csetjmp>
#include <cstring>
#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/models/image_file_internal.h>

namespace kolo::models::detail {
namespace {

// What libpng's calls are given, and what they leave when they fail.
struct PngDecoder {
  PngDecoder() = default;
  PngDecoder(const PngDecoder&) = delete;
  PngDecoder& operator=(const PngDecoder&) = delete;
  ~PngDecoder() { png_destroy_read_struct(&png, &info, nullptr); }

  png_structp png = nullptr;
  png_infop info = nullptr;
  const std::string* bytes = nullptr;
  std::size_t at = 0;
  char error[200] = "";
  std::vector<png_bytep> rows;
};

void take_error(png_structp png, png_const_charp text) {
  auto& decoder = *static_cast<PngDecoder*>(png_get_error_ptr(png));
  std::strncpy(decoder.error, text, sizeof(decoder.error) - 1);
  longjmp(png_jmpbuf(png), 1);
}

void ignore_warning(png_structp, png_const_charp) {}

void read_bytes(png_structp png, png_bytep to, std::size_t count) {
  auto& decoder = *static_cast<PngDecoder*>(png_get_io_ptr(png));
  if (count > decoder.bytes->size() - decoder.at) png_error(png, "the file ends within it");
  std::memcpy(to, decoder.bytes->data() + decoder.at, count);
  decoder.at += count;
}

// False where libpng has found an error.
bool read_header(PngDecoder& decoder) {
  if (setjmp(png_jmpbuf(decoder.png)) != 0) return false;
  png_set_read_fn(decoder.png, &decoder, read_bytes);
  png_read_info(decoder.png, decoder.info);
  png_set_expand(decoder.png);
  png_set_strip_16(decoder.png);
  png_set_gray_to_rgb(decoder.png);
  png_set_add_alpha(decoder.png, 0xff, PNG_FILLER_AFTER);
  png_set_interlace_handling(decoder.png);
  png_read_update_info(decoder.png, decoder.info);
  return true;
}

bool read_rows(PngDecoder& decoder) {
  if (setjmp(png_jmpbuf(decoder.png)) != 0) return false;
  png_read_image(decoder.png, decoder.rows.data());
  png_read_end(decoder.png, decoder.info);
  return true;
}

// 1 where there is none.
int orientation_of(PngDecoder& decoder) {
  png_uint_32 bytes = 0;
  png_bytep exif = nullptr;
  if (png_get_eXIf_1(decoder.png, decoder.info, &bytes, &exif) == 0) return 1;
  return exif_orientation({reinterpret_cast<const char*>(exif), bytes});
}

}  // namespace

Picture decode_png(const std::string& bytes, const std::string& path, ImagePart part) {
  PngDecoder decoder;
  decoder.bytes = &bytes;
  decoder.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &decoder, take_error, ignore_warning);
  if (decoder.png != nullptr) decoder.info = png_create_info_struct(decoder.png);
  if (decoder.info == nullptr) throw ResourceExhaustedError("{}: no memory for libpng", path);
  const auto fail = [&] { throw DataLossError("{}: damaged PNG: {}", path, decoder.error); };
  if (!read_header(decoder)) fail();
  const std::int64_t height = png_get_image_height(decoder.png, decoder.info),
                     width = png_get_image_width(decoder.png, decoder.info);
  check_pixels(height, width, path);
  if (png_get_rowbytes(decoder.png, decoder.info) != static_cast<std::size_t>(4 * width))
    throw InternalError("{}: libpng gives rows of {} bytes for {} pixels", path,
                        png_get_rowbytes(decoder.png, decoder.info), width);
  if (part == ImagePart::header) return {.height = height, .width = width, .rgb = {}};
  Picture picture{.height = height, .width = width, .rgb = {}};
  picture.rgb.resize(static_cast<std::size_t>(4 * height * width));
  for (std::int64_t y = 0; y < height; ++y) decoder.rows.push_back(picture.rgb.data() + 4 * y * width);
  if (!read_rows(decoder)) fail();
  lay_on_black(picture.rgb);
  return upright(std::move(picture), orientation_of(decoder));
}

}  // namespace kolo::models::detail
