#include <kolo/collectives/algorithms/measure_costs.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <span>
#include <vector>

#include <kolo/collectives/algorithms/message_collectives.h>
#include <kolo/collectives/algorithms/rounds.h>
#include <kolo/collectives/reduce/reduce.h>
#include <kolo/core/base/error.h>
#include <kolo/core/base/median.h>

namespace kolo {
namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;
using namespace std::chrono_literals;

constexpr std::chrono::seconds kAnswerDeadline{30};
constexpr Seconds kLatencyTime = 30ms, kBandwidthTime = 100ms;
constexpr Seconds kMostTime = 1s;  // for either: a link that takes so long needs no better number
constexpr std::size_t kLeastTrips = 20, kLeastMessages = 4;
constexpr Seconds kLongEnough = 10ms;  // for one message
constexpr int kTries = 3;              // of it; what disturbs one only makes it longer
constexpr std::int64_t kFirstMessage = 64 << 10, kLongestMessage = 4 << 20, kPartBytes = 256 << 10;

double run(Collective& operation) {
  const auto begin = Clock::now();
  operation.start();
  while (operation.progress() != Progress::finished)
    if (Clock::now() - begin > kAnswerDeadline)
      throw DeadlineExceededError("measuring the network: another rank has not answered for {} s",
                                  kAnswerDeadline.count());
  return Seconds(Clock::now() - begin).count();
}

bool is_enough(Seconds elapsed, Seconds time, bool has_enough) {
  return elapsed > kMostTime || (elapsed > time && has_enough);
}

class LinkMeter {
 public:
  LinkMeter(PointToPoint& network, int peer, bool leads) : network_(network), peer_(peer), leads_(leads) {}

  MeasuredLink measure() {
    MeasuredLink link;
    link.cost.latency_s = latency();
    link.cost.seconds_per_byte = seconds_per_byte();
    link.sent_bytes = sent_;
    return link;
  }

 private:
  // The leader's word goes to the other and back. Seconds of half of that.
  double agree(std::int64_t& word) {
    Rounds trip(network_, kPartBytes);
    const auto bytes = std::as_writable_bytes(std::span(&word, 1));
    for (const bool sends : {leads_, !leads_}) {
      if (sends) trip.send(peer_, bytes);
      else trip.receive(peer_, bytes);
      trip.end_round();
    }
    return run(trip) / 2;
  }

  // A machine that does other things at the same time makes single measurements worse, never better.
  double latency() {
    double least = kMostTime.count();
    const auto begin = Clock::now();
    std::size_t trips = 0;
    for (std::int64_t go = 1; go != 0; ++trips) {
      go = is_enough(Clock::now() - begin, kLatencyTime, trips >= kLeastTrips) ? 0 : 1;
      least = std::min(least, agree(go));
    }
    return std::max(least, 1e-9);
  }

  // Seconds; the least of a few.
  double exchange(std::size_t bytes) {
    Rounds both(network_, kPartBytes);
    both.send(peer_, std::span(out_).first(bytes));
    both.receive(peer_, std::span(in_).first(bytes));
    both.end_round();
    double least = run(both);
    for (int i = 1; i < kTries; ++i) least = std::min(least, run(both));
    sent_ += kTries * static_cast<std::int64_t>(bytes);
    return least;
  }

  // Longer messages until they take long enough. Their median: a link that holds a rate lets the first bytes
  // pass faster, and those behind a pause.
  double seconds_per_byte() {
    std::vector<double> seconds;
    const auto begin = Clock::now();
    for (std::int64_t bytes = kFirstMessage; agree(bytes), bytes != 0;) {
      const double took = exchange(static_cast<std::size_t>(bytes));
      const Seconds elapsed = Clock::now() - begin;
      const bool grows = took < kLongEnough.count() && bytes < kLongestMessage;
      // Where the time runs out while they still grow, the last ones must do.
      if (!grows || elapsed > kBandwidthTime) seconds.push_back(took / static_cast<double>(bytes));
      if (grows) bytes *= 2;
      if (is_enough(elapsed, kBandwidthTime, seconds.size() >= kLeastMessages)) bytes = 0;
    }
    // By the clock of the one that does not lead, none may have been long enough.
    return seconds.empty() ? 0 : std::max(median(seconds), 1e-15);
  }

  PointToPoint& network_;
  const int peer_;
  const bool leads_;
  std::vector<std::byte> out_ = std::vector<std::byte>(kLongestMessage), in_ = out_;
  std::int64_t sent_ = 0;
};

}  // namespace

MeasuredLink measure_link(PointToPoint& network, int peer, bool leads) {
  return LinkMeter(network, peer, leads).measure();
}

double measure_reduction() {
  constexpr int kTimes = 9;
  std::vector<float> sum(kLongestMessage / sizeof(float), 1.0f);
  const std::vector<float> summand(sum);
  double least = kMostTime.count();
  for (int i = 0; i < kTimes; ++i) {
    const auto begin = Clock::now();
    reduce(ReduceOp::sum, DType::f32, sum.data(), summand.data(), static_cast<std::int64_t>(sum.size()));
    least = std::min(least, Seconds(Clock::now() - begin).count());
  }
  return least / static_cast<double>(kLongestMessage);
}

CostModel measure_costs(PointToPoint& network, const Topology& topology) {
  CostModel model;
  const int rank = network.rank();
  const auto measure_between_0_and = [&](int peer, LinkCost& cost) {
    if (rank == 0) cost = measure_link(network, peer, true).cost;
    else if (rank == peer) measure_link(network, 0, false);
  };
  const auto& first_node = topology.ranks_of(topology.node_of(0));
  if (first_node.size() > 1) measure_between_0_and(first_node[1], model.inside);
  if (topology.nodes() > 1) measure_between_0_and(topology.ranks_of(1).front(), model.between);
  if (rank == 0) model.seconds_per_reduced_byte = measure_reduction();

  std::array<double, 5> numbers = {model.inside.latency_s, model.inside.seconds_per_byte,
                                   model.between.latency_s, model.between.seconds_per_byte,
                                   model.seconds_per_reduced_byte};
  run(*broadcast(network, std::as_writable_bytes(std::span(numbers)), 0, kPartBytes));
  return {.inside = {numbers[0], numbers[1]},
          .between = {numbers[2], numbers[3]},
          .seconds_per_reduced_byte = numbers[4]};
}

}  // namespace kolo
