// A training on several ranks that goes on from a checkpoint.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include <kolo/core/training/checkpoint_files.h>
#include <kolo/models/keras/callbacks.h>
#include <kolo/models/keras/checkpoint_callback.h>
#include <kolo/models/keras/distributed_callbacks.h>
#include <tests/models/keras/rank_networks.h>
#include <tests/models/keras/values.h>

namespace kolo::keras {
namespace {

// One that all ranks know, and that goes with the test.
struct FolderOfRanks {
  const std::string path = world_group().broadcast(
      std::filesystem::temp_directory_path() / ("keras_ranks_" + std::to_string(getpid())), 0);
  FolderOfRanks() = default;
  FolderOfRanks(const FolderOfRanks&) = delete;
  FolderOfRanks& operator=(const FolderOfRanks&) = delete;
  ~FolderOfRanks() { remove(); }
  void remove() const {
    world_group().allgather("");
    if (rank() == 0) std::filesystem::remove_all(path);
    world_group().allgather("");
  }
};

// Rank 0 alone writes; all go on from what it reads.
TEST(ResumeOnRanks, GoesOnBitByBit) {
  const FolderOfRanks folder;
  const Tensor x = scattered({64, 4}, 37), y = scattered({64, 1}, 11);
  const auto train = [&](std::int64_t epochs, bool resume) {
    Workspace ws;
    const Sequential net(ws, {Dense(6, {.activation = "tanh", .input_shape = {4}}), Dropout(.2), Dense(1)});
    net.compile({.optimizer = distributed(Adam()), .loss = "mse"});
    net.fit(x, y,
            {.batch_size = 8,
             .epochs = epochs,
             .verbose = 0,
             .callbacks = {BroadcastGlobalVariablesCallback(0),
                           CheckpointCallback(folder.path, {.save_epochs = 1})},
             .resume = resume});
    std::vector<std::vector<float>> all;
    for (const Tensor& weight : net.get_weights()) all.push_back(elements(weight));
    return all;
  };
  const auto whole = train(4, false);
  folder.remove();
  train(2, false);
  EXPECT_EQ(train(4, true), whole);
}

struct StopBehind : Callback {
  std::int64_t last;
  explicit StopBehind(std::int64_t batch) : last(batch) {}
  void on_batch_end(std::int64_t batch, Logs&) override {
    if (batch == last) model().set_stop_training(true);
  }
};

// Losses of 1, 3, 5 on ranks 0, 1, 2: the mean of the epoch is that of all only if each has its own sums
// back.
TEST(ResumeOnRanks, GivesEachRankItsOwnSums) {
  const FolderOfRanks folder;
  const Tensor x(DType::f32, {10, 1});
  for (float& element : x.span<float>()) element = static_cast<float>(1 + 2 * rank());
  const auto train = [&](std::int64_t last_batch, bool resume) {
    Workspace ws;
    Sequential net(ws, {Dense(1, {.use_bias = false, .kernel_initializer = "ones", .input_shape = {1}})});
    net.compile({.optimizer = SGD({.lr = 0}), .loss = itself});
    return net.fit(x, x,
                   {.batch_size = 1,
                    .epochs = 1,
                    .verbose = 0,
                    .callbacks = {std::make_shared<StopBehind>(last_batch), MetricAverageCallback(),
                                  CheckpointCallback(folder.path, {.save_epochs = 1})},
                    .resume = resume});
  };
  train(3, false);
  EXPECT_DOUBLE_EQ(train(99, true)["loss"].at(0), world_group().size());
}

struct Remembers : Callback {
  std::string seen = "rank " + std::to_string(rank());
  std::string state() const override { return seen; }
  void set_state(const std::string& state) override { seen = "again " + state; }
};

TEST(ResumeOnRanks, GivesEachRankTheStatesOfItsOwnCallbacks) {
  const FolderOfRanks folder;
  const Tensor x = Tensor::zeros(DType::f32, {4, 1});
  const auto seen = [&](bool resume) {
    Workspace ws;
    const Sequential net = slope(ws, distributed(SGD()));
    const auto remembers = std::make_shared<Remembers>();
    net.fit(x, x,
            {.epochs = 1,
             .verbose = 0,
             .callbacks = {remembers, CheckpointCallback(folder.path, {.save_epochs = 1})},
             .resume = resume});
    return remembers->seen;
  };
  seen(false);
  EXPECT_EQ(seen(true), fmt::format("again rank {}", rank()));
}

// Each rank has its own callbacks' states back, so only rank 0 knows.
TEST(ResumeOnRanks, IsOverOnAllWhereOneRankHadEndedTheTraining) {
  const FolderOfRanks folder;
  const Tensor x = scattered({8, 1}, 5);
  const auto epochs_of = [&](bool resume) {
    Workspace ws;
    const Sequential net(ws,
                         {Dense(1, {.use_bias = false, .kernel_initializer = "ones", .input_shape = {1}})});
    net.compile({.optimizer = distributed(SGD({.lr = 0})), .loss = "mse"});
    const auto history =
        net.fit(x, x,
                {.batch_size = 4,
                 .epochs = 9,
                 .verbose = 0,
                 .callbacks = {EarlyStopping({.monitor = "loss", .patience = rank() == 0 ? 1 : 99}),
                               CheckpointCallback(folder.path, {.save_epochs = 1})},
                 .resume = resume});
    return history.epoch.size();
  };
  EXPECT_EQ(epochs_of(false), 2u);
  EXPECT_EQ(epochs_of(true), 0u);
}

// Rank 0 judges epoch 0 to be the best, the others epoch 1; all have had enough behind epoch 3.
TEST(ResumeOnRanks, GivesEachRankItsOwnBestWeights) {
  const FolderOfRanks folder;
  const Tensor x = scattered({64, 4}, 37), y = scattered({64, 1}, 11);
  const auto train = [&](std::int64_t epochs, bool resume) {
    Workspace ws;
    const Sequential net = two_layers(ws, distributed(SGD({.lr = .1})));
    const std::int64_t best = rank() == 0 ? 0 : 1;
    const AnyCallback judge = LambdaCallback(
        {.on_epoch_end = [best](std::int64_t epoch, Logs& logs) { logs.set("own", epoch == best ? 1 : 2); }});
    const AnyCallback stopping =
        EarlyStopping({.monitor = "own", .patience = 3 - best, .restore_best_weights = true});
    net.fit(x, y,
            {.batch_size = 8,
             .epochs = epochs,
             .verbose = 0,
             .callbacks = {BroadcastGlobalVariablesCallback(0), judge, stopping,
                           CheckpointCallback(folder.path, {.save_epochs = 1})},
             .resume = resume});
    return elements(net.get_weights()[0]);
  };
  const auto whole = train(9, false);
  folder.remove();
  train(3, false);
  if (rank() == 0) {
    const auto saved = CheckpointReader(newest_intact_checkpoint(folder.path).value()).index().tensors;
    EXPECT_TRUE(saved.contains("keras_callbacks/2/best_weights/0"));
    EXPECT_EQ(saved.contains("keras_callbacks/rank_1/2/best_weights/0"), world_group().size() > 1);
    EXPECT_FALSE(saved.contains("keras_callbacks/rank_2/2/best_weights/0"));  // it has what rank 1 has
  }
  EXPECT_EQ(train(9, true), whole);
}

}  // namespace
}  // namespace kolo::keras
