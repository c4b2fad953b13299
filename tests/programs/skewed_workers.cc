// Two workers that train in step, of which the second one is slow: what a request to stop finds.
//
//   kolorun --cluster ps=1,worker=2 -- skewed_workers FOLDER SLEEP_MS
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>

#include <kolo/cluster.h>
#include <kolo/kolo.h>

using namespace kolo;

namespace {

int work(const ClusterEnvironment& task, const std::string& target, const std::string& folder, int sleep_ms) {
  const std::string own = "/job:worker/task:" + std::to_string(task.task_index);
  Graph graph;
  Scope s = Scope(graph).device(replica_device_setter({.worker_device = own, .cluster = task.cluster}));
  const Variable weight(s.named("w"), constant(s, 4.0f));
  const Variable step = get_or_create_global_step(s);
  SyncReplicasOptimizer optimizer(std::make_unique<GradientDescentOptimizer>(0.01f), 2);
  const Operation train = optimizer.minimize(s, mul(s, weight.read(), weight.read()), {.global_step = step});

  MonitoredTrainingSessionOptions options;
  options.master = target;
  options.is_chief = task.is_chief;
  options.recovery_wait_secs = 0.2;
  options.checkpoint_dir = task.is_chief ? folder : "";
  options.config.device_filters = {"/job:ps", own};
  options.hooks = {optimizer.make_session_run_hook(task.is_chief)};
  MonitoredTrainingSession session(graph, options);
  while (!session.should_stop()) {
    session.run(train);
    if (session.global_step() == 3) std::printf("under way\n"), std::fflush(stdout);
    if (task.task_index == 1) std::this_thread::sleep_for(std::chrono::milliseconds(sleep_ms));
  }
  session.close();
  std::printf("ended in order\n");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const ClusterEnvironment task = ClusterSpec::from_environment();
  Server server(task.cluster, {.job_name = task.job_name, .task_index = task.task_index});
  if (task.job_name != "ps") return work(task, server.target(), argv[1], std::stoi(argv[2]));
  server.join();
  return 0;
}
