// What a rank keeps that grows with the number of ranks.

#include <gtest/gtest.h>
#include <malloc.h>

#include <cstdint>
#include <iostream>
#include <memory>

#include "tests/collectives/engine/simulated_negotiation.h"
#include "tests/collectives/scale/simulated_fleet.h"

namespace kolo {
namespace {

constexpr int kRanks = 1024, kRanksOfHost = 8;

std::int64_t allocated() {
  const auto info = mallinfo2();
  return static_cast<std::int64_t>(info.uordblks + info.hblkhd);
}

TEST(Memory, OfARankGrowsBy64KiBAtMostWithAThousandRanks) {
  const std::int64_t before = allocated();
  SimulatedFleet fleet(kRanks, kRanksOfHost,
                       {StallLimits::Seconds(60), StallLimits::Seconds(120)});  // its watchdogs
  for (int rank = 0; rank < kRanks; ++rank) fleet.enter(rank);
  fleet.pass(std::chrono::seconds(1));
  detail::SimulatedNegotiation ranks(kRanks, 1024);
  for (int tensor = 0; tensor < 3; ++tensor) {
    ranks.submit_everywhere(detail::allreduce_request("g" + std::to_string(tensor)));
    ranks.settle();
  }
  const std::int64_t of_a_rank = (allocated() - before) / kRanks;
  std::cout << of_a_rank << " bytes of a rank\n";
  EXPECT_LE(of_a_rank, 64 * 1024);
}

}  // namespace
}  // namespace kolo
