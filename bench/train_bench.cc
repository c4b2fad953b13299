#include <bench/train_bench.h>

#include <fmt/core.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <optional>

#include <nlohmann/json.hpp>

#include <bench/peer.h>
#include <bench/training.h>
#include <kolo/core/base/error.h>
#include <kolo/core/base/json_text.h>
#include <kolo/core/base/median.h>
#include <kolo/core/base/process.h>
#include <kolo/core/base/text.h>
#include <kolo/core/runtime/group.h>

namespace kolo::bench {
namespace {

// What the ranks' numbers add up to. Collective.
double sum_of_ranks(double number) {
  double sum = 0;
  for (const std::string& text : world_group().allgather(fmt::format("{}", number)))
    sum += parse_double(text).value();
  return sum;
}

// Steps with and without reductions, round by round.
struct Apart {
  double ms = 0;  // of a step without: the median of the rounds', the mean of the ranks'
  std::vector<double> ratios = {};
};

// Collective.
Apart measure_apart(Training& kolo, const TrainBenchOptions& options) {
  Training alone(kolo.name(), options, false);
  std::vector<double> ms;
  Apart apart;
  // Each run begins with what its ranks agree on, and each round ends with what all of them tell.
  for (int round = 0; round < options.rounds; ++round) {
    double kolo_ms = 0, alone_ms = 0;
    const auto of_kolo = [&] { kolo_ms = kolo.run(options.seconds); };
    if (round % 2 == 0) of_kolo();
    alone_ms = alone.run(options.seconds);
    if (round % 2 == 1) of_kolo();
    apart.ratios.push_back(sum_of_ranks(1 / kolo_ms) / sum_of_ranks(1 / alone_ms));
    ms.push_back(sum_of_ranks(alone_ms) / process().size);
  }
  alone.check_loss();
  apart.ms = median(ms);
  return apart;
}

// One peer beside kolo, round by round.
struct Comparison {
  std::string command = {};
  PeerRow row = {};  // the medians' median, the least minimum, the largest memory
  std::vector<double> ms = {}, ratios = {};
};

void compare(Comparison& with, const Training& kolo, double kolo_ms, double seconds) {
  const PeerRow row = run_peer(with.command, kolo.name(), seconds);
  if (process().rank != 0) return;
  const auto work = [](std::int64_t params, int ranks, int threads, std::int64_t batch) {
    return fmt::format("{} parameters on {} ranks x {} threads with batches of {}", params, ranks, threads,
                       batch);
  };
  const std::string own = work(kolo.params(), process().size, kolo.threads(), kolo.batch()),
                    others = work(row.params, row.ranks, row.threads, row.batch);
  if (row.model != kolo.name() || own != others)
    throw FailedPreconditionError(
        "--against: \"{}\" trained {}: {}; kolo trains {}: {}; both must be the same", with.command,
        row.model, others, kolo.name(), own);
  with.ms.push_back(row.ms);
  with.ratios.push_back(row.ms / kolo_ms);
  const double min_ms = with.ms.size() == 1 ? row.min_ms : std::min(with.row.min_ms, row.min_ms);
  const std::int64_t peak_mib = std::max(with.row.peak_mib, row.peak_mib);
  with.row = row;
  with.row.min_ms = min_ms;
  with.row.peak_mib = peak_mib;
}

void add(nlohmann::ordered_json& line, const Training::GpuFigures& gpu) {
  line["gpu_ms"] = rounded(gpu.gpu_ms);
  line["host_ms"] = rounded(gpu.host_ms);
  line["launches"] = rounded(gpu.launches, 1);
  line["kept_nodes"] = gpu.kept;
  line["copies"] = rounded(gpu.copies, 1);
  line["syncs"] = rounded(gpu.syncs, 1);
  line["peak_gpu_mib"] = rounded(gpu.peak_mib, 1);
  line["plan_gpu_mib"] = rounded(gpu.plan_mib, 1);
}

void print(const Training& kolo, const Reductions& reductions, const std::optional<Training::GpuFigures>& gpu,
           const TrainBenchOptions& options) {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const int ranks = process().size;
  const std::vector<double> times = kolo.times();
  const double median_ms = median(times), min_ms = times.front();
  const double rate = static_cast<double>(ranks * kolo.batch()) / median_ms * 1e3;
  const std::int64_t peak_mib = usage.ru_maxrss / 1024;
  if (options.json) {
    nlohmann::ordered_json line{{"model", kolo.name()},
                                {"params", kolo.params()},
                                {"ranks", ranks},
                                {"threads", kolo.threads()},
                                {"batch", kolo.batch()},
                                {"device", kolo.computes_on_gpu() ? "gpu" : "cpu"},
                                {"precision", kolo.precision()},
                                {"feed", options.feeds ? "host" : "none"},
                                {"fetch", options.fetches ? "each" : "never"},
                                {"ms", rounded(median_ms)},
                                {"min_ms", rounded(min_ms)},
                                {"samples_per_s", rounded(rate, 1)},
                                {"steps", times.size()},
                                {"loss", kolo.last_loss()},
                                {"peak_mib", peak_mib}};
    if (gpu) add(line, *gpu);
    if (ranks > 1) {
      line["reduce_ms"] = rounded(reductions.ms);
      line["hidden_share"] = rounded(reductions.hidden_share);
      line["extra_exchanges"] = reductions.extra_exchanges;
    }
    fmt::print("{}\n", json_text(line));
  } else {
    fmt::print(
        "{:<8} {:>9} parameters  {} ranks x {} threads  batch {:>3}  {:8.3f} ms (min {:.3f})  {:8.1f} "
        "samples/s  {} MiB",
        kolo.name(), kolo.params(), ranks, kolo.threads(), kolo.batch(), median_ms, min_ms, rate, peak_mib);
    if (ranks > 1)
      fmt::print("  reductions {:.3f} ms, {:.0f} % hidden", reductions.ms, 100 * reductions.hidden_share);
    fmt::print("\n");
  }
  std::fflush(stdout);
}

void print(const Comparison& peer, double kolo_ms, bool json) {
  const double ms = median(peer.ms), ratio = ms / kolo_ms;
  const auto [low, high] = std::minmax_element(peer.ratios.begin(), peer.ratios.end());
  if (json) {
    const nlohmann::ordered_json line{{"model", peer.row.model},
                                      {"peer", peer.command},
                                      {"ms", rounded(ms)},
                                      {"min_ms", rounded(peer.row.min_ms)},
                                      {"peak_mib", peer.row.peak_mib},
                                      {"rounds", peer.ratios.size()},
                                      {"ratio", rounded(ratio)},
                                      {"least_ratio", rounded(*low)},
                                      {"largest_ratio", rounded(*high)}};
    fmt::print("{}\n", json_text(line));
  } else {
    fmt::print(
        "{:<8} kolo is {:.2f} times as fast ({:.2f} to {:.2f} in {} rounds) as {:8.3f} ms (min {:.3f})  {} "
        "MiB  {}\n",
        peer.row.model, ratio, *low, *high, peer.ratios.size(), ms, peer.row.min_ms, peer.row.peak_mib,
        peer.command);
  }
  std::fflush(stdout);
}

void print(const Apart& apart, const Training& kolo, bool json) {
  const auto [low, high] = std::minmax_element(apart.ratios.begin(), apart.ratios.end());
  if (json) {
    const nlohmann::ordered_json line{
        {"model", kolo.name()},          {"apart_ms", rounded(apart.ms)},
        {"rounds", apart.ratios.size()}, {"ratio", rounded(median(apart.ratios))},
        {"least_ratio", rounded(*low)},  {"largest_ratio", rounded(*high)}};
    fmt::print("{}\n", json_text(line));
  } else {
    fmt::print(
        "{:<8} the ranks are {:.3f} times as fast ({:.3f} to {:.3f} in {} rounds) as apart: {:8.3f} ms\n",
        kolo.name(), median(apart.ratios), *low, *high, apart.ratios.size(), apart.ms);
  }
  std::fflush(stdout);
}

void measure(const std::string& model, const TrainBenchOptions& options) {
  if (options.apart && process().size == 1)
    throw FailedPreconditionError("--apart holds several ranks beside themselves; this is a job of 1 rank");
  Training kolo(model, options);
  std::optional<Apart> apart;
  if (options.apart) apart = measure_apart(kolo, options);
  std::vector<Comparison> peers;
  for (const std::string& command : options.against) peers.push_back({.command = command});
  std::vector<double> medians;
  const int rounds = !peers.empty() ? options.rounds : apart ? 0 : 1;
  for (int round = 0; round < rounds; ++round) {
    medians.push_back(kolo.run(options.seconds));
    for (Comparison& peer : peers) compare(peer, kolo, medians.back(), options.seconds);
  }
  const Reductions reductions = process().size > 1 ? kolo.reductions() : Reductions{};
  const auto gpu = kolo.gpu_figures();
  kolo.check_loss();
  if (process().rank != 0) return;
  print(kolo, reductions, gpu, options);
  if (apart) print(*apart, kolo, options.json);
  for (const Comparison& peer : peers) print(peer, median(medians), options.json);
}

}  // namespace

void train_bench(const TrainBenchOptions& options) {
  for (const std::string& model : options.models) measure(model, options);
}

}  // namespace kolo::bench
