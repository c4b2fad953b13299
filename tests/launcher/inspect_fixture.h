// Runs kolo-inspect on files of a test's own folder.
#pragma once

#include <gtest/gtest.h>
#include <stdio.h>
#include <sys/wait.h>

#include <array>
#include <string>

#include <fmt/core.h>

#include "tests/core/training/temporary_directory.h"

namespace kolo {

class InspectFixture : public ::testing::Test {
 protected:
  /// The exit code of `kolo-inspect arguments`, -1 where a signal ended it; what it printed is in out_ and
  /// err_.
  int inspect(const std::string& arguments) {
    const std::string command =
        fmt::format("{}/kolo-inspect {} 2>{}", KOLO_BIN_DIR, arguments, folder_ / "stderr");
    FILE* pipe = popen(command.c_str(), "r");
    out_.clear();
    std::array<char, 4096> piece;
    for (std::size_t bytes; (bytes = fread(piece.data(), 1, piece.size(), pipe)) > 0;)
      out_.append(piece.data(), bytes);
    const int status = pclose(pipe);
    err_ = bytes_of_file(folder_ / "stderr");
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  TemporaryDirectory folder_;
  std::string out_, err_;
};

}  // namespace kolo
