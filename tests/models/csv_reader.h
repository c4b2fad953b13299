// Tables that a test writes as text.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include <kolo/core/base/error.h>
#include <kolo/models/data.h>

#include "tests/core/training/temporary_directory.h"

namespace kolo::models {

class CsvReader : public testing::Test {
 protected:
  CsvTable read(const std::string& text, const CsvOptions& options = {}) {
    std::ofstream(folder_ / "t.csv", std::ios::binary) << text;
    return read_csv(folder_ / "t.csv", options);
  }
  void refuse(const std::string& text, const std::string& why, const CsvOptions& options = {}) {
    SCOPED_TRACE(text);
    EXPECT_THAT([&] { read(text, options); }, testing::ThrowsMessage<InvalidArgumentError>(testing::AllOf(
                                                  testing::HasSubstr("t.csv"), testing::HasSubstr(why))));
  }
  TemporaryDirectory folder_;
};

}  // namespace kolo::models
