// PNG, JPEG and WebP files for the tests, written by the libraries themselves.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include <jpeglib.h>
#include <png.h>
#include <webp/encode.h>

namespace kolo::models {

/// channels: 1 grey, 3 colour, 4 with alpha; pixels [height, width, channels].
inline std::string png_bytes(int height, int width, int channels, const std::vector<std::uint8_t>& pixels) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.height = static_cast<png_uint_32>(height);
  image.width = static_cast<png_uint_32>(width);
  image.format = channels == 1 ? PNG_FORMAT_GRAY : channels == 3 ? PNG_FORMAT_RGB : PNG_FORMAT_RGBA;
  png_alloc_size_t size = 0;
  png_image_write_to_memory(&image, nullptr, &size, 0, pixels.data(), 0, nullptr);
  std::string bytes(size, '\0');
  if (png_image_write_to_memory(&image, bytes.data(), &size, 0, pixels.data(), 0, nullptr) == 0) std::abort();
  return bytes.substr(0, size);
}

/// components: 1 grey, 3 colour, 4 CMYK. in_scans: progressive, with a scan for each coefficient.
inline std::string jpeg_bytes(int height, int width, int components, const std::vector<std::uint8_t>& pixels,
                              bool in_scans = false) {
  jpeg_compress_struct jpeg{};
  jpeg_error_mgr errors{};
  jpeg.err = jpeg_std_error(&errors);
  jpeg_create_compress(&jpeg);
  unsigned char* memory = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&jpeg, &memory, &size);
  jpeg.image_height = static_cast<JDIMENSION>(height);
  jpeg.image_width = static_cast<JDIMENSION>(width);
  jpeg.input_components = components;
  jpeg.in_color_space = components == 1 ? JCS_GRAYSCALE : components == 3 ? JCS_RGB : JCS_CMYK;
  jpeg_set_defaults(&jpeg);
  jpeg_set_quality(&jpeg, 95, TRUE);
  std::vector<jpeg_scan_info> scans;
  for (int component = 0; in_scans && component < components; ++component)
    for (int i = 0; i < 64; ++i) {
      jpeg_scan_info scan{};
      scan.comps_in_scan = 1;
      scan.component_index[0] = component;
      scan.Ss = scan.Se = i;
      scans.push_back(scan);
    }
  if (in_scans) jpeg.scan_info = scans.data(), jpeg.num_scans = static_cast<int>(scans.size());
  jpeg_start_compress(&jpeg, TRUE);
  while (jpeg.next_scanline < jpeg.image_height) {
    auto* row = const_cast<std::uint8_t*>(pixels.data()) + jpeg.next_scanline * jpeg.image_width * components;
    jpeg_write_scanlines(&jpeg, &row, 1);
  }
  jpeg_finish_compress(&jpeg);
  jpeg_destroy_compress(&jpeg);
  std::string bytes(reinterpret_cast<char*>(memory), size);
  std::free(memory);
  return bytes;
}

/// channels: 3 colour, 4 with alpha; quality: of 100, below 0: lossless, what is transparent, too.
inline std::string webp_bytes(int height, int width, int channels, const std::vector<std::uint8_t>& pixels,
                              float quality = -1) {
  WebPConfig config;
  WebPPicture picture;
  WebPMemoryWriter writer;
  WebPMemoryWriterInit(&writer);
  if (WebPConfigInit(&config) == 0 || WebPPictureInit(&picture) == 0) std::abort();
  config.lossless = quality < 0 ? 1 : 0;
  config.exact = 1;
  config.quality = quality < 0 ? 75 : quality;
  picture.use_argb = config.lossless;
  picture.height = height;
  picture.width = width;
  picture.writer = WebPMemoryWrite;
  picture.custom_ptr = &writer;
  const auto import = channels == 3 ? WebPPictureImportRGB : WebPPictureImportRGBA;
  if (import(&picture, pixels.data(), channels * width) == 0 || WebPEncode(&config, &picture) == 0)
    std::abort();
  std::string bytes(reinterpret_cast<char*>(writer.mem), writer.size);
  WebPPictureFree(&picture);
  WebPMemoryWriterClear(&writer);
  return bytes;
}

/// [height, width, 3] of one colour.
inline std::vector<std::uint8_t> plain(int height, int width, std::uint8_t red, std::uint8_t green,
                                       std::uint8_t blue) {
  std::vector<std::uint8_t> pixels;
  for (int i = 0; i < height * width; ++i) pixels.insert(pixels.end(), {red, green, blue});
  return pixels;
}

}  // namespace kolo::models
