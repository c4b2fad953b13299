#include <kolo/core/kernels/cpu/peak.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <vector>

#include <kolo/core/base/error.h>
#include <kolo/core/kernels/cpu/loops/peak_loops.h>

namespace kolo {
namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

// 1 ms or less: shorter than what the system gives to a program at a time.
constexpr std::int64_t kRounds = 100000;
constexpr std::int64_t kTriadPiece = std::int64_t{1} << 18;  // elements of each array: 1 MiB
constexpr std::int64_t kPieces = 128;                        // gone through in turn: they are in no cache

// work() returns what it did; the most that it did in a second.
template <typename Work>
double best_rate(double seconds, const Work& work) {
  double best = 0;
  const auto begin = Clock::now();
  do {
    const auto start = Clock::now();
    const double done = work();
    best = std::max(best, done / Seconds(Clock::now() - start).count());
  } while (Seconds(Clock::now() - begin).count() < seconds);
  return best;
}

}  // namespace

CorePeak measure_peak(double seconds) {
  CorePeak peak;
  float sink = 0;
  peak.gflops = best_rate(seconds / 2, [&] { return detail::multiply_adds(kRounds, &sink); }) / 1e9;
  std::vector<float> a(kPieces * kTriadPiece, 0.0f), b(kPieces * kTriadPiece, 1.0f),
      c(kPieces * kTriadPiece, 2.0f);
  std::int64_t piece = 0;
  const auto next_piece = [&] {
    const std::int64_t at = piece++ % kPieces * kTriadPiece;
    detail::triad(a.data() + at, b.data() + at, c.data() + at, 0.5f, kTriadPiece);
    return 3.0 * static_cast<double>(kTriadPiece * sizeof(float));
  };
  peak.GBps = best_rate(seconds / 2, next_piece) / 1e9;
  // Each chain tends to 1, and 1 + 0.5 · 2 is 2.
  if (!(std::abs(sink) > 0) || a.front() != 2)
    throw InternalError("the measured loops gave {} and {}", sink, a.front());
  return peak;
}

}  // namespace kolo
