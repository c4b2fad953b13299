#include <kolo/collectives/algorithms/measure_costs.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <functional>
#include <limits>
#include <span>
#include <vector>

#include <kolo/collectives/algorithms/broadcast.h>
#include <kolo/collectives/algorithms/rounds.h>
#include <kolo/collectives/reduce/reduce.h>
#include <kolo/core/base/error.h>

namespace kolo {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds kDeadline{30};
constexpr std::size_t kShort = 8, kLong = std::size_t{4} << 20;  // bytes of a message
constexpr std::int64_t kChunkBytes = std::int64_t{256} << 10;
constexpr int kShortExchanges = 200, kLongExchanges = 9;

void run(Collective& operation) {
  const auto deadline = Clock::now() + kDeadline;
  operation.start();
  while (operation.progress() != Progress::finished)
    if (Clock::now() > deadline)
      throw DeadlineExceededError("measuring the network: another rank has not answered for {} s",
                                  kDeadline.count());
}

// What disturbs a call only makes it longer.
double least_seconds(int calls, const std::function<void()>& call) {
  double least = std::numeric_limits<double>::max();
  for (int i = 0; i < calls; ++i) {
    const auto begin = Clock::now();
    call();
    least = std::min(least, std::chrono::duration<double>(Clock::now() - begin).count());
  }
  return least;
}

// Both send and receive, as ranks do in the algorithms; the first exchanges wake the path up.
LinkCost measure_link(PointToPoint& network, int peer) {
  std::vector<std::byte> out(kLong), in(kLong);
  const auto seconds_of = [&](std::size_t bytes, int exchanges) {
    Rounds exchange(network, kChunkBytes);
    exchange.send(peer, std::span(out).first(bytes));
    exchange.receive(peer, std::span(in).first(bytes));
    exchange.end_round();
    for (int i = 0; i < exchanges / 5 + 1; ++i) run(exchange);
    return least_seconds(exchanges, [&] { run(exchange); });
  };
  LinkCost cost;
  cost.latency_s = std::max(seconds_of(kShort, kShortExchanges), 1e-9);
  const double seconds = seconds_of(kLong, kLongExchanges);
  cost.seconds_per_byte = std::max(seconds - cost.latency_s, seconds / 2) / static_cast<double>(kLong);
  return cost;
}

double measure_reduction() {
  std::vector<float> sum(kLong / sizeof(float), 1.0f);
  const std::vector<float> summand(sum);
  const auto elements = static_cast<std::int64_t>(sum.size());
  const auto add = [&] { reduce(ReduceOp::sum, DType::f32, sum.data(), summand.data(), elements); };
  add();
  return least_seconds(kLongExchanges, add) / static_cast<double>(kLong);
}

}  // namespace

CostModel measure_costs(PointToPoint& network, const Topology& topology) {
  CostModel model;
  const int rank = network.rank();
  const auto measure_between_0_and = [&](int peer, LinkCost& cost) {
    if (rank == 0) cost = measure_link(network, peer);
    else if (rank == peer) measure_link(network, 0);
  };
  const auto& first_node = topology.ranks_of(topology.node_of(0));
  if (first_node.size() > 1) measure_between_0_and(first_node[1], model.inside);
  if (topology.nodes() > 1) measure_between_0_and(topology.ranks_of(1).front(), model.between);
  if (rank == 0) model.seconds_per_reduced_byte = measure_reduction();

  std::array<double, 5> numbers = {model.inside.latency_s, model.inside.seconds_per_byte,
                                   model.between.latency_s, model.between.seconds_per_byte,
                                   model.seconds_per_reduced_byte};
  run(*broadcast(network, std::as_writable_bytes(std::span(numbers)), 0, kChunkBytes));
  return {.inside = {numbers[0], numbers[1]},
          .between = {numbers[2], numbers[3]},
          .seconds_per_reduced_byte = numbers[4]};
}

}  // namespace kolo
