// PNG, JPEG and WebP files: as many pixels as the picture's sides say, which can be brought to another size,
// or a kolo::Error.
#include <kolo/core/base/error.h>
#include <kolo/models/data.h>

#include "tests/fuzz/fuzz_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  try {
    const std::string file = kolo::write_fuzz_file(bytes, size);
    const kolo::models::Picture picture = kolo::models::read_image(file, 8, 8);
    kolo::require(picture.height > 0 && picture.width > 0);
    kolo::require(picture.rgb.size() == static_cast<std::size_t>(3 * picture.height * picture.width));
    std::uint8_t pixels[3 * 8 * 8];
    kolo::models::resize_and_crop(picture, 3, 8, 8, pixels);
    const kolo::models::PicturePart part =
        kolo::models::read_image_part(file, 8, 8, [](std::int64_t height, std::int64_t width) {
          const std::int64_t top = height / 3, left = width / 2;
          return kolo::models::PictureBox{.top = static_cast<double>(top),
                                          .left = static_cast<double>(left),
                                          .height = static_cast<double>(height - top),
                                          .width = static_cast<double>(width - left)};
        });
    kolo::models::resize_part(part.picture, part.box, 3, 8, 8, pixels);
  } catch (const kolo::Error&) {
  }
  return 0;
}
