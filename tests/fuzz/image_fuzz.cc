// PNG, JPEG and WebP files: as many pixels as the picture's sides say, which can be brought to another size, or a
// kolo::Error.
#include <kolo/core/base/error.h>
#include <kolo/models/data.h>

#include "tests/fuzz/fuzz_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  try {
    const kolo::models::Picture picture = kolo::models::read_image(kolo::write_fuzz_file(bytes, size), 8, 8);
    kolo::require(picture.height > 0 && picture.width > 0);
    kolo::require(picture.rgb.size() == static_cast<std::size_t>(3 * picture.height * picture.width));
    std::uint8_t pixels[3 * 8 * 8];
    kolo::models::resize_and_crop(picture, 3, 8, 8, pixels);
  } catch (const kolo::Error&) {
  }
  return 0;
}
