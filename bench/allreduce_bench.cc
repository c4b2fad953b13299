#include <bench/allreduce_bench.h>

#include <fmt/core.h>
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <sstream>
#include <string>

#include <nlohmann/json.hpp>

#include <kolo/collectives/algorithms/cost_model.h>
#include <kolo/collectives/job/runtime.h>
#include <kolo/collectives/schedule/schedule.h>
#include <kolo/core/base/error.h>
#include <kolo/core/base/json_text.h>
#include <kolo/core/base/median.h>
#include <kolo/core/base/process.h>
#include <kolo/core/tensor/allocator.h>

namespace kolo::bench {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int kWarmUpCalls = 3;
constexpr int kLeastCalls = 10;
constexpr int kMostCalls = 1000;
constexpr std::int64_t kBytesInAll = std::int64_t{64}
                                     << 20;  // about as much for each size, within those limits

// Memory that both sides reduce in place, in turns.
class BenchBuffer {
 public:
  BenchBuffer(std::int64_t bytes, const std::string& kind) : elements_(bytes / 4) {
    if (kind == "bucket")
      bucket_ = std::make_unique<Buffer>(bucket_allocator(), static_cast<std::size_t>(bytes));
    else ordinary_.resize(static_cast<std::size_t>(elements_));
  }
  std::span<float> elements() {
    float* first = bucket_ ? reinterpret_cast<float*>(bucket_->data()) : ordinary_.data();
    return {first, static_cast<std::size_t>(elements_)};
  }

 private:
  std::int64_t elements_;
  std::unique_ptr<Buffer> bucket_;
  std::vector<float> ordinary_;
};

void check_sum(std::span<const float> elements, const char* peer) {
  const auto expected = static_cast<float>(process().size);
  for (const float element : elements)
    if (element != expected)
      throw InternalError("{} summed ones over {} ranks to {}", peer, process().size, element);
}

struct Peer {
  const char* name;
  std::function<void()> reduce;
  std::vector<double> us;
};

// Times one call: the ranks start together, the buffer holds ones.
void timed_call(Peer& peer, std::span<float> elements, bool keep) {
  std::fill(elements.begin(), elements.end(), 1.0f);
  MPI_Barrier(MPI_COMM_WORLD);
  const auto start = Clock::now();
  peer.reduce();
  const std::chrono::duration<double, std::micro> elapsed = Clock::now() - start;
  check_sum(elements, peer.name);
  if (keep) peer.us.push_back(elapsed.count());
}

// As the communicator chooses and the model sees it; nothing without a model.
std::optional<double> predicted_us(const std::optional<CostModel>& costs, std::int64_t bytes) {
  if (!costs) return std::nullopt;
  const auto runtime = detail::current_runtime();
  const Topology& topology = runtime->world().topology();
  const std::string& asked = runtime->options().allreduce;
  const bool chooses = asked == "auto" || asked == "nccl";
  return predicted_seconds(*costs, chooses ? fastest_allreduce(*costs, topology, bytes) : asked, topology,
                           bytes) *
         1e6;
}

std::optional<CostModel> read_costs(const std::string& path) {
  if (path.empty()) return std::nullopt;
  std::ifstream file(path);
  if (!file) throw NotFoundError("kolo-bench allreduce: --costs: there is no file {}", path);
  std::ostringstream text;
  text << file.rdbuf();
  return CostModel::from_json(text.str());
}

void print(Peer& peer, std::int64_t bytes, const AllreduceBenchOptions& options,
           std::optional<double> predicted) {
  std::sort(peer.us.begin(), peer.us.end());
  const double us = median(peer.us);
  const int ranks = process().size;
  const double gbps = static_cast<double>(bytes) / us / 1e3;
  const double bus = gbps * 2 * (ranks - 1) / ranks;
  if (options.json) {
    nlohmann::ordered_json row = {{"peer", peer.name},
                                  {"ranks", ranks},
                                  {"bytes", bytes},
                                  {"us", rounded(us)},
                                  {"min_us", rounded(peer.us.front())},
                                  {"GBps", rounded(gbps)},
                                  {"busGBps", rounded(bus)},
                                  {"buffers", options.buffers}};
    if (predicted) row["predicted_us"] = rounded(*predicted);
    fmt::print("{}\n", json_text(row));
  } else {
    fmt::print("{:<5} {} ranks {:>10} bytes  {:>11.2f} us (min {:.2f})  {:7.3f} GB/s  bus {:7.3f} GB/s\n",
               peer.name, ranks, bytes, us, peer.us.front(), gbps, bus);
    if (predicted) fmt::print("      predicted {:.2f} us\n", *predicted);
  }
  std::fflush(stdout);
}

}  // namespace

void allreduce_bench(const AllreduceBenchOptions& options) {
  const auto runtime = detail::current_runtime();
  if (runtime == nullptr || !runtime->has_peers())
    throw InvalidArgumentError(
        "kolo-bench allreduce needs two ranks or more; start it as: mpirun -n 2 kolo-bench allreduce");
  int level = MPI_THREAD_SINGLE;
  MPI_Query_thread(&level);
  if (level < MPI_THREAD_MULTIPLE)
    throw FailedPreconditionError(
        "this MPI library gives thread level {}; measuring beside the communication thread needs "
        "MPI_THREAD_MULTIPLE",
        level);
  const auto costs = read_costs(options.costs);
  const int channel = runtime->thread().open_channel();
  for (const std::int64_t bytes : options.sizes) {
    BenchBuffer buffer(bytes, options.buffers);
    const auto elements = buffer.elements();
    const auto reduction = runtime->world().allreduce(TypedBuffer::of(elements), ReduceOp::sum);
    Peer kolo{"kolo", [&] { runtime->thread().run(channel, reduction, "kolo-bench"); }, {}};
    Peer mpi{"mpi",
             [&] {
               MPI_Allreduce(MPI_IN_PLACE, elements.data(), static_cast<int>(elements.size()), MPI_FLOAT,
                             MPI_SUM, MPI_COMM_WORLD);
             },
             {}};
    const auto calls = std::clamp<std::int64_t>(kBytesInAll / bytes, kLeastCalls, kMostCalls);
    for (std::int64_t call = -kWarmUpCalls; call < calls; ++call)
      for (Peer* peer : {&kolo, &mpi}) timed_call(*peer, elements, call >= 0);
    if (process().rank == 0)
      for (Peer* peer : {&kolo, &mpi})
        print(*peer, bytes, options, peer == &kolo ? predicted_us(costs, bytes) : std::nullopt);
  }
}

}  // namespace kolo::bench
