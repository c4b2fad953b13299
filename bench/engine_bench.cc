#include <bench/engine_bench.h>

#include <fmt/core.h>
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <kolo/collectives/engine/eager.h>
#include <kolo/collectives/job/runtime.h>
#include <kolo/core/base/error.h>
#include <kolo/core/base/json_text.h>
#include <kolo/core/base/median.h>

namespace kolo::bench {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int kEngineWarmUp = 5;
constexpr std::int64_t kPlain = -1;

double us_since(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

struct Kind {
  const char* name;
  std::int64_t fusion_bytes;  // kPlain: none of the engine's business
  std::vector<double> us = {};
  std::vector<double> submission_us = {};  // until the last tensor is submitted
  std::int64_t messages = 0;
};

class EngineStep {
 public:
  explicit EngineStep(const EngineBenchOptions& options) : values_(options.tensors), order_(options.tensors) {
    for (int i = 0; i < options.tensors; ++i) {
      values_[i].resize(static_cast<std::size_t>(options.bytes / 4));
      names_.push_back(fmt::format("layer{}/weights/gradient", i));
      order_[i] = i;
    }
    std::shuffle(order_.begin(), order_.end(), std::mt19937(process().rank));
  }

  // Returns how long the submission has taken.
  double run() {
    const auto start = Clock::now();
    handles_.clear();
    for (const int i : order_)
      handles_.push_back(allreduce_async(std::span(values_[i]), ReduceOp::sum, {.name = names_[i]}));
    const double us = us_since(start);
    for (const auto& handle : handles_) handle.wait();
    return us;
  }
  // What a program without an engine does; it has to bring the tensors into one order by itself.
  double run_plain() {
    for (auto& value : values_)
      MPI_Allreduce(MPI_IN_PLACE, value.data(), static_cast<int>(value.size()), MPI_FLOAT, MPI_SUM,
                    MPI_COMM_WORLD);
    return 0;
  }
  void fill() {
    for (auto& value : values_) std::fill(value.begin(), value.end(), 1.0f);
  }
  void check() const {
    const auto expected = static_cast<float>(process().size);
    for (const auto& value : values_)
      for (const float element : value)
        if (element != expected)
          throw InternalError("the engine summed ones over {} ranks to {}", process().size, element);
  }

 private:
  std::vector<std::vector<float>> values_;
  std::vector<std::string> names_;
  std::vector<int> order_;
  std::vector<Handle<void>> handles_;
};

// From the next operation on, on all ranks; their cycle stays.
void set_fusion(detail::Runtime& runtime, std::int64_t bytes) {
  if (process().rank == 0)
    runtime.thread().call([&] {
      runtime.engine().set(0)->tune(
          {.fusion_bytes = bytes, .cycle_ms = runtime.options().cycle_time.count()});
    });
  barrier({.name = "kolo-bench"});
}

void print(const Kind& kind, const EngineBenchOptions& options) {
  const double submission_us = median(kind.submission_us);
  const double us = median(kind.us), min_us = *std::min_element(kind.us.begin(), kind.us.end());
  const double per_second = options.tensors / us * 1e6;
  const double messages = static_cast<double>(kind.messages) / options.steps;
  if (options.json)
    fmt::print("{}\n", json_text(nlohmann::ordered_json{{"kind", kind.name},
                                                        {"ranks", process().size},
                                                        {"tensors", options.tensors},
                                                        {"bytes", options.bytes},
                                                        {"us", rounded(us, 1)},
                                                        {"min_us", rounded(min_us, 1)},
                                                        {"submission_us", rounded(submission_us, 1)},
                                                        {"tensors_per_s", std::round(per_second)},
                                                        {"messages_per_step", messages}}));
  else
    fmt::print(
        "{:<9} {} ranks {:>6} tensors of {} bytes  {:>10.1f} us  min {:>10.1f} us  submission {:>8.1f} us  "
        "{:>10.0f} tensors/s\n",
        kind.name, process().size, options.tensors, options.bytes, us, min_us, submission_us, per_second);
  std::fflush(stdout);
}

}  // namespace

void engine_bench(const EngineBenchOptions& options) {
  const auto runtime = detail::current_runtime();
  if (runtime == nullptr || !runtime->has_peers())
    throw InvalidArgumentError(
        "kolo-bench engine needs two ranks or more; start it as: mpirun -n 2 kolo-bench engine");
  Kind kinds[] = {{"fused", runtime->options().fusion_bytes}, {"unfused", 0}, {"mpi", kPlain}};
  EngineStep step(options);
  for (int round = -kEngineWarmUp; round < options.steps; ++round)
    for (Kind& kind : kinds) {
      if (kind.fusion_bytes != kPlain) set_fusion(*runtime, kind.fusion_bytes);
      step.fill();
      barrier({.name = "kolo-bench"});
      const auto messages = engine_statistics().negotiation_messages;
      const auto start = Clock::now();
      const double submission_us = kind.fusion_bytes == kPlain ? step.run_plain() : step.run();
      const double elapsed_us = us_since(start);
      step.check();
      if (round < 0) continue;
      kind.us.push_back(elapsed_us);
      kind.submission_us.push_back(submission_us);
      kind.messages += engine_statistics().negotiation_messages - messages;
    }
  if (process().rank == 0)
    for (Kind& kind : kinds) print(kind, options);
}

}  // namespace kolo::bench
