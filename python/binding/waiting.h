// Waits that let other Python threads run and that Ctrl-C ends.
#pragma once

#include <pybind11/pybind11.h>

#include <chrono>
#include <optional>

namespace kolo::python {

/// How long Ctrl-C may take to be seen.
inline constexpr std::chrono::milliseconds kSignalPeriod{50};

/// Calls `is_over(deadline)`, which waits until then at most and says whether there is nothing to wait for
/// any more, until it is true or `seconds` have passed; tells which. Throws what a signal's handler raises:
/// KeyboardInterrupt. Called with the GIL held.
template <typename IsOver>
bool wait_with_signals(const IsOver& is_over, std::optional<double> seconds = {}) {
  using Clock = std::chrono::steady_clock;
  std::optional<Clock::time_point> end;
  if (seconds)
    end = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(*seconds));
  while (true) {
    auto deadline = Clock::now() + kSignalPeriod;
    if (end && *end < deadline) deadline = *end;
    bool over = false;
    {
      const pybind11::gil_scoped_release release;
      over = is_over(deadline);
    }
    if (over) return true;
    if (PyErr_CheckSignals() != 0) throw pybind11::error_already_set();
    if (end && Clock::now() >= *end) return false;
  }
}

}  // namespace kolo::python
