// A parameter server keeps nothing of its steps.
#include <gmock/gmock.h>

#include <future>

#include "tests/core/cluster/server_process.h"
#include "tests/core/cluster/servers_in_process.h"
#include "tests/core/cluster/sync_worker.h"

namespace kolo {
namespace {

class SteadyMemory : public ServersTest {};

TEST_F(SteadyMemory, OfAParameterServerDoesNotGrowWithItsSteps) {
  kill("ps0");
  const ServerProcess ps(cluster_);
  SyncTraining chief{.cluster = cluster_, .target = target("worker0"), .steps = 100, .elements = 1'000'000};
  SyncTraining second = chief;
  second.target = target("worker1"), second.worker = 1;
  double after_ten = 0;
  chief.before_step = [&](std::int64_t step) {
    if (step == 10) after_ten = ps.memory("VmRSS");
  };
  auto other = std::async(std::launch::async, [&] { return train_in_step(second); });
  train_in_step(chief);
  other.get();
  const double end = ps.memory("VmRSS");
  RecordProperty("MiB_after_ten_steps", std::to_string(after_ten));
  RecordProperty("MiB_after_hundred_steps", std::to_string(end));
  EXPECT_GT(after_ten, 0);
  // The 180 gradients of 90 steps are 687 MiB. What malloc keeps in its arenas (transport.cc) is less.
  EXPECT_LT(end, after_ten + 170);
}

}  // namespace
}  // namespace kolo
