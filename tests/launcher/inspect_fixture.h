// Runs kolo-inspect on files of a test's own folder.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include <fmt/core.h>

#include "tests/core/training/temporary_directory.h"
#include "tests/shell_command.h"
#include "tests/support/paths.h"

namespace kolo {

class InspectFixture : public ::testing::Test {
 protected:
  /// The exit code of `kolo-inspect arguments`; what it printed is in out_ and err_.
  int inspect(const std::string& arguments) {
    auto [code, output] =
        run_command(fmt::format("{} {} 2>{}", program_path("kolo-inspect"), arguments, folder_ / "stderr"));
    out_ = std::move(output);
    err_ = bytes_of_file(folder_ / "stderr");
    return code;
  }

  TemporaryDirectory folder_;
  std::string out_, err_;
};

}  // namespace kolo
