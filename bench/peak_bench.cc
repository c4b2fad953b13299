#include <bench/peak_bench.h>

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <vector>

#include <nlohmann/json.hpp>

#include <bench/peak_loops.h>
#include <kolo/core/base/error.h>

namespace kolo::bench {
namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

// 1 ms or less: shorter than what the system gives to a program at a time.
constexpr std::int64_t kRounds = 100000;
constexpr std::int64_t kElements = std::int64_t{32} << 20;  // of each array: 128 MiB

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

Peak measure_peak(double seconds) {
  Peak peak;
  float sink = 0;
  peak.gflops = best_rate(seconds / 2, [&] { return multiply_adds(kRounds, &sink); }) / 1e9;
  std::vector<float> a(kElements, 0.0f), b(kElements, 1.0f), c(kElements, 2.0f);
  peak.GBps = best_rate(seconds / 2,
                        [&] {
                          triad(a.data(), b.data(), c.data(), 0.5f, kElements);
                          return 3.0 * static_cast<double>(kElements * sizeof(float));
                        }) /
              1e9;
  // Each chain tends to 1, and 1 + 0.5 · 2 is 2.
  if (!(std::abs(sink) > 0) || a.front() != 2 || a.back() != 2)
    throw InternalError("the measured loops gave {} and {}", sink, a.front());
  return peak;
}

void peak_bench(const PeakBenchOptions& options) {
  const Peak peak = measure_peak(options.seconds);
  const auto rounded = [](double value) { return std::round(value * 10) / 10; };
  if (options.json)
    fmt::print("{}\n", nlohmann::ordered_json{{"instruction_set", instruction_set()},
                                              {"GFLOPs", rounded(peak.gflops)},
                                              {"triad_GBps", rounded(peak.GBps)}}
                           .dump());
  else
    fmt::print("one core ({}): {:.1f} GFLOP/s of f32 multiply-adds, {:.1f} GB/s by triad\n",
               instruction_set(), peak.gflops, peak.GBps);
}

}  // namespace kolo::bench
