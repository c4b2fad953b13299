// A folder of data files, as --data names it.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

#include <kolo/models/data.h>

#include "tests/core/training/temporary_directory.h"
#include "tests/models/image_files.h"

namespace kolo::models {

class DataFolder : public testing::Test {
 protected:
  void write(const std::string& name, const std::string& bytes) {
    std::filesystem::create_directories(std::filesystem::path(folder_ / name).parent_path());
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
  }
  void write_picture(const std::string& name, std::uint8_t grey, int height = 8, int width = 8) {
    const auto pixels = plain(height, width, grey, grey, grey);
    write(name, name.ends_with("png")    ? png_bytes(height, width, 3, pixels)
                : name.ends_with("webp") ? webp_bytes(height, width, 3, pixels)
                                         : jpeg_bytes(height, width, 3, pixels));
  }
  DataRequest request(Shape sample = {3, 4, 4}, DType input = DType::f32, const std::string& below = "") {
    return {.data = below.empty() ? folder_.path() : folder_ / below,
            .sample = std::move(sample),
            .input = input};
  }
  TemporaryDirectory folder_;
};

}  // namespace kolo::models
