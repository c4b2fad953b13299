// Which ops the tests have checked, and for what. The helpers that check write it down as they do, one file
// for each test program; tests/core/ops/coverage_test.cc compares them with the registered ops.
#pragma once

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include "tests/support/paths.h"

namespace kolo {

enum class OpCheck {
  value,     // the op's result was handed to a test, or compared
  shape,     // what its shape function says was compared
  gradient,  // its gradient was compared
};

inline const char* name(OpCheck check) {
  return check == OpCheck::value ? "value" : check == OpCheck::shape ? "shape" : "gradient";
}

inline std::filesystem::path op_checks_folder() { return program_path("../tests/op_checks"); }

/// For the checking helpers, and beside a comparison that none of them makes (an op that updates a variable).
/// Ops are found in the programs of tests/core/ops and in those that their CMakeLists.txt declares with
/// CHECKS_OPS.
inline void record_op_check(const std::string& op, OpCheck check) {
  static std::set<std::string> known;
  static std::ofstream file = [] {
    std::filesystem::create_directories(op_checks_folder());
    return std::ofstream(op_checks_folder() / program_invocation_short_name);
  }();
  const std::string line = op + ' ' + name(check);
  if (known.insert(line).second) file << line << std::endl;
}

}  // namespace kolo
