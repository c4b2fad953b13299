#include <bench/peak_bench.h>

#include <fmt/core.h>

#include <cmath>

#include <nlohmann/json.hpp>

#include <kolo/core/base/json_text.h>
#include <kolo/core/base/median.h>
#include <kolo/core/kernels/cpu/loops/peak_loops.h>
#include <kolo/core/kernels/cpu/peak.h>

namespace kolo::bench {

void peak_bench(const PeakBenchOptions& options) {
  const CorePeak peak = measure_peak(options.seconds);
  if (options.json)
    fmt::print("{}\n", json_text(nlohmann::ordered_json{{"instruction_set", detail::instruction_set()},
                                                        {"GFLOPs", rounded(peak.gflops, 1)},
                                                        {"triad_GBps", rounded(peak.GBps, 1)}}));
  else
    fmt::print("one core ({}): {:.1f} GFLOP/s of f32 multiply-adds, {:.1f} GB/s by triad\n",
               detail::instruction_set(), peak.gflops, peak.GBps);
}

}  // namespace kolo::bench
