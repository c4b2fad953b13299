// The code on docs/clusters.md that needs servers.
#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>

#include <kolo/cluster.h>
#include <kolo/kolo.h>

#include "tests/core/training/temporary_directory.h"

namespace kolo {
namespace {

TEST(ServersPage, TrainsOnAServerOfItsOwn) {
  const TemporaryDirectory folder;
  std::filesystem::current_path(folder.path());
  setenv("KOLO_CLUSTER", R"({"cluster":{"worker":["localhost:0"]},"task":{"type":"worker","index":0}})", 1);
  const ClusterEnvironment task = ClusterSpec::from_environment();
  Server server(task.cluster, {.job_name = task.job_name, .task_index = task.task_index});
  if (task.job_name == "ps") server.join();  // until SIGTERM, or a stop() from elsewhere

  Graph graph;
  const Scope s(graph);
  const Variable step = get_or_create_global_step(s), w(s.named("w"), constant(s, 0.0f));
  const Output more = assign_add(s, w, constant(s, 2.0f)),
               count = assign_add(s, step, constant(s, Tensor::scalar<std::int64_t>(1)));
  {
    Session session(graph, server.target());
    session.run(global_variables_initializer(s));
    EXPECT_EQ(session.run(more).value<float>(), 2);
  }
  MonitoredTrainingSession sess(graph, {.checkpoint_dir = "ck",
                                        .config = {.device_filters = {"/job:ps", "/job:worker/task:0"}},
                                        .hooks = {std::make_shared<StopAtStepHook>(1000)},
                                        .master = server.target(),
                                        .is_chief = task.is_chief});
  while (!sess.should_stop()) sess.run({more, count});
  EXPECT_EQ(sess.global_step(), 1000);
  sess.close();
  EXPECT_EQ(latest_checkpoint("ck"), "ck/model.ckpt-1000");
  unsetenv("KOLO_CLUSTER");
}

}  // namespace
}  // namespace kolo
