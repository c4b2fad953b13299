#include <csetjmp>
#include <cstddef>
#include <cstdio>  // jpeglib.h needs it before itself

#include <jerror.h>
#include <jpeglib.h>

#include <kolo/core/base/error.h>
#include <kolo/models/image_file_internal.h>

namespace kolo::models::detail {
namespace {

struct Decoder {
  Decoder() { jpeg.err = jpeg_std_error(&errors); }
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;
  ~Decoder() { jpeg_destroy_decompress(&jpeg); }

  jpeg_decompress_struct jpeg{};
  jpeg_error_mgr errors{};
  std::jmp_buf left;
  char error[JMSG_LENGTH_MAX] = "";
};

Decoder& of(j_common_ptr jpeg) { return *static_cast<Decoder*>(jpeg->client_data); }

[[noreturn]] void leave(j_common_ptr jpeg) {
  Decoder& decoder = of(jpeg);
  decoder.errors.format_message(jpeg, decoder.error);
  longjmp(decoder.left, 1);
}

// A warning (level −1) is damage that the library would paint over with grey, but for those about what it
// may well pass over; above are traces.
void take_message(j_common_ptr jpeg, int level) {
  const int code = of(jpeg).errors.msg_code;
  const bool harmless = code == JWRN_EXTRANEOUS_DATA || code == JWRN_ADOBE_XFORM || code == JWRN_JFIF_MAJOR;
  if (level < 0 && !harmless) leave(jpeg);
}

// False where the library has found an error.
bool read_header(Decoder& decoder, const std::string& bytes) {
  if (setjmp(decoder.left) != 0) return false;
  jpeg_create_decompress(&decoder.jpeg);
  decoder.jpeg.client_data = &decoder;
  jpeg_mem_src(&decoder.jpeg, reinterpret_cast<const unsigned char*>(bytes.data()),
               static_cast<unsigned long>(bytes.size()));
  jpeg_read_header(&decoder.jpeg, TRUE);
  return true;
}

bool start(Decoder& decoder) {
  if (setjmp(decoder.left) != 0) return false;
  jpeg_start_decompress(&decoder.jpeg);
  return true;
}

bool read_rows(Decoder& decoder, Picture& picture) {
  if (setjmp(decoder.left) != 0) return false;
  jpeg_decompress_struct& jpeg = decoder.jpeg;
  while (jpeg.output_scanline < jpeg.output_height) {
    JSAMPROW row = picture.rgb.data() + std::size_t{3} * jpeg.output_scanline * jpeg.output_width;
    jpeg_read_scanlines(&jpeg, &row, 1);
  }
  jpeg_finish_decompress(&jpeg);
  return true;
}

}  // namespace

Picture decode_jpeg(const std::string& bytes, const std::string& path, std::int64_t height,
                    std::int64_t width) {
  Decoder decoder;
  decoder.jpeg.client_data = &decoder;
  decoder.errors.error_exit = leave;
  decoder.errors.emit_message = take_message;
  const auto fail = [&] { throw DataLossError("{}: damaged JPEG: {}", path, decoder.error); };
  if (!read_header(decoder, bytes)) fail();
  jpeg_decompress_struct& jpeg = decoder.jpeg;
  check_pixels(jpeg.image_height, jpeg.image_width, path);
  if (jpeg.jpeg_color_space == JCS_CMYK || jpeg.jpeg_color_space == JCS_YCCK)
    throw InvalidArgumentError("{}: a JPEG in CMYK; it must be in colour (YCbCr, RGB) or grey", path);
  jpeg.out_color_space = JCS_RGB;
  // Of a large picture the transform itself gives a smaller one: 1/2, 1/4 or 1/8 of its sides.
  for (jpeg.scale_denom = 1; jpeg.scale_denom < 8; jpeg.scale_denom *= 2)
    if (jpeg.image_height / (2 * jpeg.scale_denom) < height ||
        jpeg.image_width / (2 * jpeg.scale_denom) < width)
      break;
  jpeg.scale_num = 1;
  if (!start(decoder)) fail();
  Picture picture{.height = jpeg.output_height, .width = jpeg.output_width, .rgb = {}};
  picture.rgb.resize(static_cast<std::size_t>(3 * picture.height * picture.width));
  if (!read_rows(decoder, picture)) fail();
  return picture;
}

}  // namespace kolo::models::detail
