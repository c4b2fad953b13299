// The code on docs/clusters.md.
#include <gmock/gmock.h>

#include <kolo/cluster.h>
#include <kolo/kolo.h>

namespace kolo {
namespace {

TEST(ClustersPage, DescribesOneClusterInSeveralForms) {
  const ClusterSpec cluster({{"ps", {"node1:2222", "node2:2222"}}, {"eval", {{7, "[::1]:2222"}}}});
  const ClusterSpec same =
      ClusterSpec::from_json(R"({"ps": ["node1:2222", "node2:2222"], "eval": {"7": "[::1]:2222"}})");
  const ClusterSpec text = ClusterSpec::from_text("ps|node1:2222;node2:2222,worker|node3:2222");
  EXPECT_EQ(same, cluster);
  EXPECT_EQ(text.as_map().at("ps"), cluster.as_map().at("ps"));
}

std::string device_of(const Output& output) { return output.node->requested_device(); }

TEST(ClustersPage, PutsVariablesOnParameterServers) {
  const ClusterSpec cluster = ClusterSpec::from_text("ps|node1:2222;node2:2222,worker|node3:2222");
  Graph graph;
  const Output x = placeholder(Scope(graph), DType::f32, {-1, 784});
  const Scope s = Scope(graph).device(replica_device_setter({.cluster = cluster}));
  const Variable w(s.named("w"), zeros(s, DType::f32, {784, 10})),  // /job:ps/task:0
      b(s.named("b"), zeros(s, DType::f32, {10}));                  // /job:ps/task:1
  const Output y = bias_add(s, matmul(s, x, w), b);                 // /job:worker
  EXPECT_EQ(device_of(w.ref()), "/job:ps/task:0");
  EXPECT_EQ(device_of(b.ref()), "/job:ps/task:1");
  EXPECT_EQ(device_of(y), "/job:worker");
}

TEST(ClustersPage, HasTheTasksSave) {
  Graph graph;
  create_global_step(Scope(graph));
  std::vector<std::shared_ptr<SessionRunHook>> hooks;
  const auto saver = std::make_shared<Saver>(graph, SaverOptions{.sharded = true});
  hooks.push_back(std::make_shared<CheckpointSaverHook>(
      CheckpointSaverOptions{.checkpoint_dir = "/shared/ck", .save_steps = 1000, .saver = saver}));
  EXPECT_EQ(hooks.size(), 1U);
}

TEST(ClustersPage, CutsATableIntoParts) {
  Graph graph;
  const Scope s(graph);
  const Output ids = placeholder(s, DType::i32, {-1});
  const PartitionedVariable table = partitioned_variable(
      s.named("table"), {1000000, 64},
      [](const Scope& in, const Shape& part) { return random_normal(in, DType::f32, part, 0, 0.1); },
      fixed_size(4));
  const Output rows = embedding_lookup(s, table, ids, PartitionStrategy::div);
  EXPECT_EQ(table.parts().size(), 4U);
  EXPECT_TRUE(rows.shape().is_compatible_with({-1, 64}));
}

}  // namespace
}  // namespace kolo
