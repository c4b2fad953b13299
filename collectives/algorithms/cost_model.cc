#include <kolo/collectives/algorithms/cost_model.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <functional>
#include <limits>
#include <span>
#include <vector>

#include <kolo/collectives/algorithms/message_collectives.h>
#include <kolo/collectives/algorithms/rounds.h>
#include <kolo/collectives/reduce/reduce.h>
#include <kolo/core/base/error.h>
#include <kolo/core/base/json_text.h>

namespace kolo {
namespace {

/// What the ranks do at the same time: each sends `bytes` to its partner and reduces `reduced` of what comes.
class Steps {
 public:
  Steps(const CostModel& model, const Topology& topology) : model_(model), topology_(topology) {}

  // partner(rank): who it sends to, or -1. The slowest link counts; ranks of a node share the one to others.
  template <class Partner>
  double step(const Partner& partner, double bytes, double reduced) const {
    std::vector<int> leaving(topology_.nodes(), 0);
    bool stays_inside = false;
    for (int rank = 0; rank < topology_.ranks(); ++rank) {
      const int to = partner(rank);
      if (to < 0) continue;
      if (topology_.node_of(to) == topology_.node_of(rank)) stays_inside = true;
      else ++leaving[topology_.node_of(rank)];
    }
    const int most = *std::max_element(leaving.begin(), leaving.end());
    const double within = stays_inside ? time(model_.inside, bytes) : 0;
    const double across = most > 0 ? time(model_.between, bytes * most) : 0;
    return std::max(within, across) + reduced * model_.seconds_per_reduced_byte;
  }
  static double time(const LinkCost& link, double bytes) {
    return link.latency_s + bytes * link.seconds_per_byte;
  }

  double ring(double bytes) const {
    const int ranks = topology_.ranks();
    const auto right = [ranks](int rank) { return (rank + 1) % ranks; };
    const double part = bytes / ranks;
    return (ranks - 1) * (step(right, part, part) + step(right, part, 0));
  }

  // Those from the largest power of two on, to the others and back.
  double fold(double bytes, int power) const {
    if (power == topology_.ranks()) return 0;
    return step([power](int rank) { return rank < power ? -1 : rank - power; }, bytes, bytes) +
           step([&](int rank) { return rank + power < topology_.ranks() ? rank + power : -1; }, bytes, 0);
  }
  auto partners(int power, int distance) const {
    return [power, distance](int rank) { return rank < power ? rank ^ distance : -1; };
  }

  double halving_doubling(double bytes) const {
    const int power = power_of_two_below(topology_.ranks());
    double seconds = fold(bytes, power), part = bytes;
    for (int distance = 1; distance < power; distance *= 2) {
      part /= 2;
      seconds += step(partners(power, distance), part, part) + step(partners(power, distance), part, 0);
    }
    return seconds;
  }

  double recursive_doubling(double bytes) const {
    const int power = power_of_two_below(topology_.ranks());
    double seconds = fold(bytes, power);
    for (int distance = 1; distance < power; distance *= 2)
      seconds += step(partners(power, distance), bytes, bytes);
    return seconds;
  }

  double tree(double bytes) const {
    double seconds = 0;
    for (int distance = 1; distance < topology_.ranks(); distance *= 2) {
      const auto parent = [distance](int rank) {
        return rank % (2 * distance) == distance ? rank - distance : -1;
      };
      seconds += step(parent, bytes, bytes) + step(parent, bytes, 0);
    }
    return seconds;
  }

  // The work of the nodes goes on while the wire carries other pieces: the longer of the two counts, and of
  // the shorter what comes before the first piece and after the last.
  double hierarchical(double bytes) const {
    constexpr double kPieces = 8;
    std::size_t largest = 0, smallest = topology_.ranks_of(0).size();
    for (int node = 0; node < topology_.nodes(); ++node) {
      largest = std::max(largest, topology_.ranks_of(node).size());
      smallest = std::min(smallest, topology_.ranks_of(node).size());
    }
    const auto local = static_cast<double>(largest), shards = static_cast<double>(smallest);
    const double nodes = topology_.nodes();
    const double pieces = std::clamp(bytes / (65536 * shards * nodes), 1.0, kPieces);
    const auto transfer = [pieces](const LinkCost& link, double of) {
      return pieces * link.latency_s + of * link.seconds_per_byte;
    };
    const double node_seconds = (local - 1) * (2 * transfer(model_.inside, bytes / shards) +
                                               bytes / shards * model_.seconds_per_reduced_byte);
    const double wire_seconds = (nodes - 1) * (2 * transfer(model_.between, bytes / nodes) +
                                               bytes / nodes / shards * model_.seconds_per_reduced_byte);
    return std::max(node_seconds, wire_seconds) + std::min(node_seconds, wire_seconds) / pieces;
  }

 private:
  const CostModel& model_;
  const Topology& topology_;
};

double positive(const nlohmann::json& object, const char* member) {
  if (!object.is_object() || !object.contains(member) || !object[member].is_number() ||
      object[member].get<double>() <= 0)
    throw InvalidArgumentError("a table of costs needs the number \"{}\", above 0, in {}", member,
                               json_text(object));
  return object[member].get<double>();
}

LinkCost link_from(const nlohmann::json& table, const char* member) {
  const nlohmann::json link = table.is_object() && table.contains(member) ? table[member] : nlohmann::json();
  if (!link.is_object()) throw InvalidArgumentError("a table of costs needs the object \"{}\"", member);
  return {positive(link, "latency_us") / 1e6, 1 / (positive(link, "GBps") * 1e9)};
}

}  // namespace

std::string CostModel::to_json() const {
  const auto link = [](const LinkCost& cost) {
    return nlohmann::ordered_json{{"latency_us", cost.latency_s * 1e6},
                                  {"GBps", 1e-9 / cost.seconds_per_byte}};
  };
  return json_text(nlohmann::ordered_json{{"inside", link(inside)},
                                          {"between", link(between)},
                                          {"reduce_GBps", 1e-9 / seconds_per_reduced_byte}});
}

CostModel CostModel::from_json(const std::string& text) {
  const auto table = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (table.is_discarded())
    throw InvalidArgumentError("a table of costs is not JSON: {}", text.substr(0, 80));
  CostModel model;
  model.inside = link_from(table, "inside");
  model.between = link_from(table, "between");
  model.seconds_per_reduced_byte = 1 / (positive(table, "reduce_GBps") * 1e9);
  return model;
}

double predicted_seconds(const CostModel& model, const std::string& algorithm, const Topology& topology,
                         std::int64_t bytes) {
  if (topology.ranks() == 1) return 0;
  const Steps steps(model, topology);
  const auto n = static_cast<double>(bytes);
  if (algorithm == "ring") return steps.ring(n);
  if (algorithm == "halving_doubling") return steps.halving_doubling(n);
  if (algorithm == "recursive_doubling") return steps.recursive_doubling(n);
  if (algorithm == "tree") return steps.tree(n);
  if (algorithm == "hierarchical") return steps.hierarchical(n);
  throw InvalidArgumentError("there is no cost model of the allreduce \"{}\"", algorithm);
}

std::string fastest_allreduce(const CostModel& model, const Topology& topology, std::int64_t bytes) {
  std::string fastest;
  double least = 0;
  const bool has_levels = topology.nodes() > 1 && topology.nodes() < topology.ranks();
  for (const char* algorithm : {"halving_doubling", "hierarchical", "recursive_doubling", "ring", "tree"}) {
    if (algorithm == std::string("hierarchical") && !has_levels) continue;
    const double seconds = predicted_seconds(model, algorithm, topology, bytes);
    if (!fastest.empty() && seconds >= least) continue;
    fastest = algorithm;
    least = seconds;
  }
  return fastest;
}

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

std::string choose_allreduce(const AllreduceCase& which, const CostModel& costs) {
  return which.shares_memory ? "shared_memory" : fastest_allreduce(costs, which.topology, which.bytes);
}

}  // namespace kolo
