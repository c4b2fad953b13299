#include <bench/kernels_bench.h>

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include <nlohmann/json.hpp>

#include <bench/training.h>
#include <kolo/core/base/json_text.h>
#include <kolo/core/base/median.h>
#include <kolo/core/kernels/cpu/onednn/native_bf16.h>
#include <kolo/core/kernels/own_kernels.h>

namespace kolo::bench {
namespace {

using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::duration<double, std::milli>;
constexpr int kFewestRounds = 8;

// One way to compute a model's steps, and what they took so far.
class Way {
 public:
  Way(std::string name, const std::string& model, const KernelsBenchOptions& options,
      detail::KernelSource source, Precision precision)
      : name_(std::move(name)), source_(source) {
    detail::set_kernel_source(source);
    TrainBenchOptions training;
    training.device = TrainBenchOptions::Device::cpu;
    training.threads = options.threads;
    training.precision = precision;
    training_.emplace(model, training);
  }

  // Kernels are made at the first step of a trace level, too.
  void step() {
    detail::set_kernel_source(source_);
    RunMetadata metadata = training_->traced_step();
    std::map<std::string, double> of_nodes;
    auto first = Clock::time_point::max(), last = Clock::time_point::min();
    for (const TraceEvent& event : metadata.step_stats.events) {
      of_nodes[event.name] += Milliseconds(event.end - event.start).count();
      first = std::min(first, event.start), last = std::max(last, event.end);
    }
    for (const auto& [node, ms] : of_nodes) node_ms_[node].push_back(ms);
    steps_.push_back(Milliseconds(last - first).count());
    kernels_ = std::move(metadata.kernels);
  }

  const std::string& name() const { return name_; }
  double step_ms() const { return median(steps_); }
  std::size_t steps() const { return steps_.size(); }
  std::map<std::string, double> node_ms() const {
    std::map<std::string, double> medians;
    for (const auto& [node, ms] : node_ms_) medians[node] = median(ms);
    return medians;
  }
  const std::vector<KernelChoice>& kernels() const { return kernels_; }

 private:
  std::string name_;
  detail::KernelSource source_;
  std::optional<Training> training_;
  std::vector<double> steps_;
  std::map<std::string, std::vector<double>> node_ms_;
  std::vector<KernelChoice> kernels_;
};

// Whether precision bf16 left the convolutions to kolo's own kernels.
bool keeps_convolutions(const Way& way) {
  return std::any_of(way.kernels().begin(), way.kernels().end(), [](const KernelChoice& choice) {
    return choice.kernel.starts_with("blocked_convolution.cc");
  });
}

// Of the nodes whose own kernel the library's way left out.
std::map<std::string, detail::OwnKernel> own_kernel_of_nodes(const Way& library) {
  std::map<std::string, detail::OwnKernel> found;
  for (const KernelChoice& choice : library.kernels())
    for (const detail::OwnKernel kernel : detail::kOwnKernels)
      if (choice.declined.find(fmt::format("{}: KOLO_KERNELS", name_of(kernel))) != std::string::npos)
        found[choice.node] = kernel;
  return found;
}

// winograd_for_bf16's are whole steps.
struct Sums {
  std::int64_t nodes = 0;
  double own_ms = 0, library_ms = 0;
};

std::map<detail::OwnKernel, Sums> sums_of(const Way& own, const Way& library) {
  std::map<detail::OwnKernel, Sums> sums;
  const auto kernel_of = own_kernel_of_nodes(library);
  const auto own_ms = own.node_ms(), library_ms = library.node_ms();
  double only_own = 0, only_library = 0;
  for (const auto& [node, ms] : library_ms) {
    if (own_ms.count(node) == 0) only_library += ms;
    if (const auto kernel = kernel_of.find(node); kernel != kernel_of.end() && own_ms.count(node) > 0) {
      Sums& sum = sums[kernel->second];
      ++sum.nodes;
      sum.library_ms += ms;
      sum.own_ms += own_ms.at(node);
    }
  }
  for (const auto& [node, ms] : own_ms)
    if (library_ms.count(node) == 0) only_own += ms;
  const auto most = std::max_element(sums.begin(), sums.end(), [](const auto& a, const auto& b) {
    return a.second.own_ms < b.second.own_ms;
  });
  if (most != sums.end()) most->second.own_ms += only_own, most->second.library_ms += only_library;
  return sums;
}

nlohmann::ordered_json row_of(const std::string& model, int threads) {
  const detail::Processor& processor = detail::this_processor();
  return {{"vendor", processor.vendor},
          {"family", processor.family},
          {"model_number", processor.model},
          {"model", model},
          {"threads", threads}};
}

void print(const std::string& model, const std::vector<std::unique_ptr<Way>>& ways,
           const KernelsBenchOptions& options) {
  const Way &own = *ways[0], &library = *ways[1];
  if (options.json) {
    nlohmann::ordered_json line = row_of(model, options.threads);
    line["steps"] = own.steps();
    for (const auto& way : ways) line[way->name() + "_ms"] = rounded(way->step_ms());
    fmt::print("{}\n", json_text(line));
  } else {
    fmt::print("{:<9} step", model);
    for (const auto& way : ways) fmt::print("  {} {:.3f} ms", way->name(), way->step_ms());
    fmt::print("  ({} steps each)\n", own.steps());
  }
  auto sums = sums_of(own, library);
  if (ways.size() == 5 && keeps_convolutions(*ways[4]))
    sums[detail::OwnKernel::winograd_for_bf16] = {1, ways[4]->step_ms(), ways[3]->step_ms()};
  for (const auto& [kernel, sum] : sums) {
    const double ratio = sum.library_ms / sum.own_ms;
    if (options.json) {
      nlohmann::ordered_json line = row_of(model, options.threads);
      line["kernel"] = name_of(kernel);
      line["nodes"] = sum.nodes;
      line["own_ms"] = rounded(sum.own_ms), line["library_ms"] = rounded(sum.library_ms);
      line["ratio"] = rounded(ratio);
      fmt::print("{}\n", json_text(line));
    } else {
      fmt::print("{:<9} {:<16} {:>3} nodes: own {:.3f} ms, library {:.3f} ms: own is {:.2f} times as fast\n",
                 model, name_of(kernel), sum.nodes, sum.own_ms, sum.library_ms, ratio);
    }
  }
  std::fflush(stdout);
}

}  // namespace

void kernels_bench(const KernelsBenchOptions& options) {
  const detail::KernelSource before = detail::kernel_source();
  for (const std::string& model : options.models) {
    std::vector<std::unique_ptr<Way>> ways;
    ways.push_back(std::make_unique<Way>("own", model, options, detail::KernelSource::own, Precision::f32));
    ways.push_back(
        std::make_unique<Way>("library", model, options, detail::KernelSource::library, Precision::f32));
    ways.push_back(
        std::make_unique<Way>("table", model, options, detail::KernelSource::table, Precision::f32));
    if (detail::has_native_bf16()) {
      ways.push_back(std::make_unique<Way>("bf16_library", model, options, detail::KernelSource::library,
                                           Precision::bf16));
      ways.push_back(
          std::make_unique<Way>("bf16_own", model, options, detail::KernelSource::own, Precision::bf16));
    }
    const auto begin = Clock::now();
    for (int round = 0;
         round < kFewestRounds || Milliseconds(Clock::now() - begin).count() < options.seconds * 1e3; ++round)
      for (std::size_t i = 0; i < ways.size(); ++i) ways[(i + round) % ways.size()]->step();
    print(model, ways, options);
  }
  detail::set_kernel_source(before);
}

}  // namespace kolo::bench
