// A training graph that was saved and loaded again is the same training.
#include <gmock/gmock.h>

#include <string>
#include <vector>

#include <kolo/core/graph/graph_def.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/losses.h>
#include <kolo/core/runtime/session.h>
#include <kolo/core/training/saver.h>
#include <kolo/models/zoo.h>
#include <kolo/optimizer/distributed_optimizer.h>
#include <kolo/optimizer/rules.h>

#include "tests/core/training/temporary_directory.h"

namespace kolo {
namespace {

constexpr int kBatch = 4;

void build_lenet_training(Graph& graph) {
  graph.set_seed(11);
  Scope s(graph);
  const Output x = placeholder(s.named("x"), DType::f32, {-1, 1, 28, 28});
  const Output y = placeholder(s.named("y"), DType::i32, {-1});
  const Output loss = identity(s.named("loss"), softmax_cross_entropy(s, models::lenet(s, x), y));
  DistributedOptimizer optimizer(std::make_unique<MomentumOptimizer>(0.01f, 0.9f));
  group(s.named("train"), {optimizer.minimize(s, loss)});
  variables_initializer(s, global_variables(graph), "init");
}

// What a user finds again by name.
struct Training {
  explicit Training(Graph& of) : graph(of), session(of) {}

  void initialize() { session.run(initializer()); }
  Operation initializer() const { return Operation(graph.find_node("init")); }

  std::vector<float> losses(int steps) {
    std::vector<float> losses;
    for (int i = 0; i < steps; ++i) {
      const auto results =
          session.run({graph.find_output("loss:0"), Operation(graph.find_node("train"))},
                      {{graph.find_output("x:0"), images(i)}, {graph.find_output("y:0"), labels}});
      losses.push_back(results[0].value<float>());
    }
    return losses;
  }

  static Tensor images(int step) {
    Tensor images(DType::f32, {kBatch, 1, 28, 28});
    std::int64_t i = 0;
    for (float& pixel : images.span<float>()) pixel = static_cast<float>((++i * 37 + step) % 101) / 101;
    return images;
  }

  Graph& graph;
  Session session;
  Tensor labels = Tensor::of<std::int32_t>({kBatch}, {1, 7, 0, 3});
};

struct SavedGraph : ::testing::Test {
  SavedGraph() { build_lenet_training(original); }
  TemporaryDirectory folder;
  Graph original, loaded;
};

TEST_F(SavedGraph, TrainsToTheSameLossesBitForBit) {
  write_graph(original, folder / "lenet.pb");
  import_graph_def(Scope(loaded), read_graph_def(folder / "lenet.pb"));
  Training first(original), second(loaded);
  first.initialize(), second.initialize();
  const auto losses = first.losses(3);
  EXPECT_EQ(second.losses(3), losses);
  EXPECT_NE(losses[0], losses[2]);
}

TEST_F(SavedGraph, RestoresACheckpointOfTheOriginal) {
  import_graph_def(Scope(loaded), to_graph_def(original));
  Training first(original), second(loaded);
  first.initialize();
  first.losses(2);
  Saver(original).save(first.session, folder / "model.ckpt", 2);
  Saver(loaded).restore(second.session, folder / "model.ckpt-2");
  EXPECT_EQ(second.losses(2), first.losses(2));
}

TEST_F(SavedGraph, GivesTheSameBytesWhenItIsSavedAgain) {
  const std::string bytes = encode_graph_def(to_graph_def(original));
  import_graph_def(Scope(loaded), decode_graph_def(bytes));
  EXPECT_EQ(encode_graph_def(to_graph_def(loaded)), bytes);
}

}  // namespace
}  // namespace kolo
