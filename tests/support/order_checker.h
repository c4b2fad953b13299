// Judges a log of core/device/order_log.h: two uses of the same memory, one of which writes, without an order
// between them. Nothing has to go wrong for that, and no luck is needed: what no wait orders is reported.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

namespace kolo::testing {

struct LogLine {
  std::string kind;
  std::vector<std::string> fields;
};
using Log = std::vector<LogLine>;

/// Throws std::runtime_error at a line that is none.
Log read_log(std::istream& lines);
Log read_log_file(const std::string& file);

/// `conv1 (writes, GPU:0 in) and relu (reads, GPU:0 compute) use 0x7f00+64 without an order; missing: GPU:0
/// compute waits for what GPU:0 in has been given with conv1`, once a pair of uses and actors.
std::vector<std::string> conflicts(const Log& log);

}  // namespace kolo::testing
