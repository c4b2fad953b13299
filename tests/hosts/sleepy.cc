// A training that costs nothing but time: sleepy FOLDER STEPS MS [SAVE_STEPS [MS_BEFORE]]. It sleeps
// MS_BEFORE milliseconds before init, as one that reads its data. Each step of 8 × 4 weights sleeps MS, and
// its data follow from step and rank alone: a training that was stopped and goes on ends with the bytes of
// one that was not.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>

#include <kolo/kolo.h>

using namespace kolo;

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  if (argc > 5) std::this_thread::sleep_for(std::chrono::milliseconds(std::atoll(argv[5])));
  init(&argc, &argv);
  const std::string folder = argv[1];
  const std::int64_t steps = std::atoll(argv[2]), ms = std::atoll(argv[3]);
  const std::int64_t save_steps = argc > 4 ? std::atoll(argv[4]) : 100000;

  Graph graph;
  graph.set_seed(7);
  Scope s(graph);
  const auto x = placeholder(s, DType::f32, {8, 4});
  const Variable w(s.named("w"), random_uniform(s, DType::f32, {8, 4}));
  DistributedOptimizer optimizer(std::make_unique<AdamOptimizer>(0.01f));
  const auto train = optimizer.minimize(s, reduce_sum(s, square(s, sub(s, w, x))));

  MonitoredTrainingSession session(graph, {.checkpoint_dir = folder,
                                           .save_checkpoint_steps = save_steps,
                                           .hooks = {std::make_shared<BroadcastGlobalVariablesHook>(0),
                                                     std::make_shared<StopAtStepHook>(steps)}});
  const ElasticRestart restart = elastic_restart();
  std::string lost;
  for (const std::string& host : restart.lost_hosts) lost += " " + host;
  if (rank() == 0 && restart.number > 0)
    std::printf("restart %d after %d ranks, lost:%s\n", restart.number, restart.ranks_before, lost.c_str());
  if (rank() == 0)
    std::printf("starts at step %lld\n", static_cast<long long>(session.global_step())), std::fflush(stdout);
  while (!session.should_stop()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(ms));
    Tensor values(DType::f32, {8, 4});
    for (int i = 0; i < 32; ++i)
      values.data<float>()[i] = static_cast<float>((session.global_step() * 31 + rank() * 7 + i) % 17);
    session.run(train, {{x, values}});
  }
  session.close();
  if (rank() == 0) std::printf("ends at step %lld\n", static_cast<long long>(session.global_step()));
  return exit_code();
}
