#include <kolo/collectives/algorithms/cost_model.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstddef>
#include <vector>

#include <kolo/collectives/algorithms/rounds.h>
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

std::string choose_allreduce(const AllreduceCase& which, const CostModel& costs) {
  return which.shares_memory ? "shared_memory" : fastest_allreduce(costs, which.topology, which.bytes);
}

}  // namespace kolo
