// The code on docs/clusters.md that needs servers, and its recipe for their credentials.
#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <kolo/cluster.h>
#include <kolo/kolo.h>

#include "tests/core/training/temporary_directory.h"
#include "tests/support/paths.h"

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

/// The fenced block of the page that has these words.
std::string block_with(const std::string& words) {
  std::ifstream page(source_path("docs/clusters.md"));
  std::string block;
  bool fenced = false;
  for (std::string line; std::getline(page, line);) {
    if (!line.starts_with("```")) {
      if (fenced) block += line + "\n";
      continue;
    }
    if (fenced && block.find(words) != std::string::npos) return block;
    fenced = !fenced;
    block.clear();
  }
  return "";
}

TEST(ServersPage, MakesCertificatesByOpenssl) {
  const TemporaryDirectory folder;
  std::filesystem::current_path(folder.path());
  std::string recipe = block_with("openssl req -x509");
  const std::string host = "host=node1";
  ASSERT_NE(recipe.find(host), std::string::npos) << recipe;
  recipe.replace(recipe.find(host), host.size(), "host=localhost");
  std::ofstream("recipe") << recipe << "env | grep ^KOLO_CLUSTER_TLS >variables\n";
  ASSERT_EQ(std::system("sh -e recipe >log 2>&1"), 0) << recipe;
  std::ifstream variables("variables");
  std::vector<std::string> names;
  for (std::string line; std::getline(variables, line);) {
    names.push_back(line.substr(0, line.find('=')));
    setenv(names.back().c_str(), line.substr(line.find('=') + 1).c_str(), 1);
  }
  EXPECT_THAT(names, ::testing::UnorderedElementsAre("KOLO_CLUSTER_TLS_CA", "KOLO_CLUSTER_TLS_CERT",
                                                     "KOLO_CLUSTER_TLS_KEY"));

  Server server(ClusterSpec({{"worker", {"localhost:0"}}}));
  Graph graph;
  const Output x = constant(Scope(graph), 2.5f);
  SessionConfig through_socket{.operation_timeout_in_ms = 30'000};
  through_socket.rpc_options.use_rpc_for_inprocess_master = true;
  EXPECT_EQ(Session(graph, server.target(), through_socket).run(x).value<float>(), 2.5f);
  for (const std::string& name : names) unsetenv(name.c_str());
  EXPECT_THROW(Session(graph, server.target(), through_socket), UnavailableError);
}

}  // namespace
}  // namespace kolo
