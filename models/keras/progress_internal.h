// The progress line, as Keras draws it.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include <kolo/core/runtime/group.h>
#include <kolo/models/keras/fit.h>

namespace kolo::keras::detail {

/// Who prints, and writes files.
inline bool is_first_rank() { return world_group().rank() == 0; }

/// " 40/160 [======>.......................]".
std::string bar_text(std::int64_t seen, std::int64_t target);
/// "60s", "1:23", "1:02:05".
std::string eta_text(double seconds);
/// "2s 2ms/sample": all of it, and each of `count` units.
std::string spent_text(double seconds, std::int64_t count, const char* unit);
/// "0.2500", "4.2000e-04".
std::string value_text(double value);

/// Writes to stdout. On a terminal it repaints, elsewhere it writes the last state alone.
class ProgressLine {
 public:
  ProgressLine(std::int64_t target, int verbose, const char* unit = "sample");
  /// More of the target is seen; values: means so far.
  void update(std::int64_t seen, const Logs& values);
  /// The last state, with a line's end.
  void finish(std::int64_t seen, const Logs& values);

 private:
  using Clock = std::chrono::steady_clock;
  double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }
  void paint(const std::string& line, bool last);

  std::int64_t target_;
  int verbose_;
  const char* unit_;
  bool terminal_;
  Clock::time_point start_ = Clock::now();
  double painted_ = -1;  // seconds of the last painting
  std::size_t width_ = 0;
};

}  // namespace kolo::keras::detail
