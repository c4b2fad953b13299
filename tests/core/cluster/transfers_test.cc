// What goes over the wire, counted by the loopback interface: alone on the machine.
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include <kolo/core/base/error.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/reductions.h>
#include <kolo/core/ops/variables.h>

#include "servers_in_process.h"

namespace kolo {
namespace {

std::int64_t bytes_over_loopback() {
  std::ifstream lines("/proc/self/net/dev");
  for (std::string line; std::getline(lines, line);)
    if (const std::size_t at = line.find("lo:"); at != std::string::npos)
      return std::stoll(line.substr(at + 3));
  throw InternalError("there is no loopback interface in /proc/self/net/dev");
}

class Transfers : public ServersTest {};

// Row 12 of CLUSTER.md's worked examples.
TEST_F(Transfers, ValueThatManyNodesOfATaskReadCrossesOnce) {
  constexpr std::int64_t kElements = 100'000'000, kBytes = 4 * kElements;
  SessionConfig with_gpu;
  with_gpu.virtual_gpus = {{.total_bytes = std::int64_t{1} << 30}};
  start("worker", 0, with_gpu);
  Graph graph;
  const Scope s(graph), ps = s.device("/job:ps/task:0"), cpu = s.device("/job:worker/task:0/device:CPU:0"),
                        gpu = s.device("/job:worker/task:0/device:GPU:0");
  const Variable v(ps.named("v"), fill(ps, DType::f32, {kElements}, 0.5));
  const Output value = v.read();
  std::vector<Fetch> fetches{reduce_mean(gpu, value)};
  for (int i = 0; i < 5; ++i) fetches.push_back(reduce_mean(cpu, value));
  Session session(graph, target("worker0"), patient());
  session.run(v.initializer());
  const std::int64_t before = bytes_over_loopback();
  for (const Tensor& mean : session.run(fetches)) EXPECT_NEAR(mean.value<float>(), 0.5, 1e-3);
  const std::int64_t sent = bytes_over_loopback() - before;
  EXPECT_GE(sent, kBytes);
  EXPECT_LT(sent, kBytes + kBytes / 10);
}

}  // namespace
}  // namespace kolo
