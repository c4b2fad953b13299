// Checkpoints of sessions on servers, in both forms, and what a restored session goes on with.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/mount.h>

#include <filesystem>
#include <fstream>

#include <kolo/core/base/error.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/partitioned_variables.h>
#include <kolo/core/ops/random.h>
#include <kolo/core/ops/variables.h>
#include <kolo/core/training/checkpoint_files.h>
#include <kolo/core/training/monitored_session.h>
#include <kolo/core/training/saver.h>

#include "tests/core/cluster/servers_in_process.h"
#include "tests/core/training/temporary_directory.h"

namespace kolo {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::IsSupersetOf;
using testing::Not;
using testing::ThrowsMessage;
using testing::UnorderedElementsAre;

constexpr char kPs0[] = "/job:ps/task:0", kPs1[] = "/job:ps/task:1";

/// a = [1,2], b = [[1,2,3],[4,5,6]], e = 0 … 10 in `parts` parts, global_step; each on the task that it is
/// given.
struct Model {
  Model(const std::vector<std::string>& tasks, int parts) {
    graph.set_seed(7);
    const auto on = [&](std::size_t i) { return s.device(tasks.empty() ? "" : tasks[i % tasks.size()]); };
    {
      Scope at = on(0);
      a = Variable(at.named("a"), constant(at, Tensor::of<float>({2}, {1, 2})));
      step = create_global_step(at);
    }
    {
      Scope at = on(1);
      b = Variable(at.named("b"), constant(at, Tensor::of<float>({2, 3}, {1, 2, 3, 4, 5, 6})));
    }
    Tensor rows(DType::f32, {11});
    for (int i = 0; i < 11; ++i) rows.data<float>()[i] = static_cast<float>(i);
    for (int i = 0, first = 0; i < parts; ++i) {
      const int size = 11 / parts + (i < 11 % parts ? 1 : 0);
      Scope at = on(static_cast<std::size_t>(i) + 1);
      const std::string name = parts == 1 ? "e" : "e/part_" + std::to_string(i);
      e.emplace_back(at.named(name), constant(at, rows.rows(first, first + size)));
      if (parts > 1)
        set_variable_slice(graph, e.back(), {.whole = "e", .shape = {11}, .axis = 0, .first = first});
      first += size;
    }
    init = global_variables_initializer(s);
    train = assign_add(s, step, constant(s, Tensor::scalar<std::int64_t>(1)));
  }
  void change(Session& session) {
    session.run(init);
    session.set_variables({{"a", Tensor::of<float>({2}, {7, 8})}});
    session.run(train);
  }
  void expect_changed(Session& session) {
    EXPECT_THAT(session.run(a.read()).span<float>(), ElementsAre(7, 8));
    EXPECT_THAT(session.run(b.read()).span<float>(), ElementsAre(1, 2, 3, 4, 5, 6));
    EXPECT_EQ(*session.run(step.read()).data<std::int64_t>(), 1);
    float next = 0;
    for (const Variable& part : e) {
      const Tensor rows = session.run(part.read());
      for (const float value : rows.span<float>()) EXPECT_EQ(value, next++);
    }
    EXPECT_EQ(next, 11);
  }

  Graph graph;
  Scope s{graph};
  Variable a, b, step;
  std::vector<Variable> e;
  Operation init;
  Output train;
};

std::vector<std::string> files_in(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& file : std::filesystem::directory_iterator(folder))
    names.push_back(file.path().filename().string());
  return names;
}

class ShardedCheckpoint : public ServersTest {
 protected:
  TemporaryDirectory folder_;
};

TEST_F(ShardedCheckpoint, HasTheNamesOfItsSaver) {
  Model model({kPs0, kPs1}, 1);
  Session session(model.graph, target("worker0"), patient());
  model.change(session);
  Saver saver({{"alpha", model.a}, {"steps", model.step}}, {.sharded = true});
  const std::string path = saver.save(session, folder_ / "model.ckpt");
  const CheckpointIndex index = CheckpointReader(path).index();
  EXPECT_EQ(index.tensors.size(), 2U);
  EXPECT_EQ(index.tensors.count("alpha") + index.tensors.count("steps"), 2U);
  EXPECT_EQ(index.global_step, 1);
  session.run(model.init);
  saver.restore(session, path);
  EXPECT_THAT(session.run(model.a.read()).span<float>(), ElementsAre(7, 8));
}

TEST_F(ShardedCheckpoint, HoldsNoStrings) {
  Model model({kPs0}, 1);
  const Variable words(model.s.named("words"), constant(model.s, Tensor::scalar<std::string>("grün")));
  Session session(model.graph, target("worker0"), patient());
  session.run(std::vector<Fetch>{model.init, words.initializer()});
  EXPECT_THAT([&] { Saver(model.graph, {.sharded = true}).save(session, folder_ / "m"); },
              ThrowsMessage<UnimplementedError>(HasSubstr("variable \"words\" is of strings")));
  EXPECT_THAT(folder_.names(), IsEmpty());
  const std::string path = Saver(model.graph).save(session, folder_ / "m");
  session.set_variables({{"words", Tensor::scalar<std::string>("other")}});
  Saver(model.graph).restore(session, path);
  EXPECT_EQ(session.run(words.read()).value<std::string>(), "grün");
}

TEST_F(ShardedCheckpoint, HasAFileOfEachTaskWithVariables) {
  Model model({kPs0, kPs1}, 3);
  Session session(model.graph, target("worker0"), patient());
  model.change(session);
  Saver saver(model.graph, {.sharded = true});
  EXPECT_EQ(saver.save(session, folder_ / "model.ckpt", 1), folder_ / "model.ckpt-1");
  EXPECT_THAT(folder_.names(), UnorderedElementsAre("checkpoint", "model.ckpt-1.index.json",
                                                    "model.ckpt-1-00000-of-00002.safetensors",
                                                    "model.ckpt-1-00001-of-00002.safetensors"));
  const auto names = [&](const char* file) {
    std::vector<std::string> all;
    const SafetensorsReader reader(folder_ / file);
    for (const auto& [name, entry] : reader.entries()) all.push_back(name);
    return all;
  };
  EXPECT_THAT(names("model.ckpt-1-00000-of-00002.safetensors"), ElementsAre("a", "e/part_1", "global_step"));
  EXPECT_THAT(names("model.ckpt-1-00001-of-00002.safetensors"), ElementsAre("b", "e/part_0", "e/part_2"));
  EXPECT_EQ(latest_checkpoint(folder_.path()), folder_ / "model.ckpt-1");
  EXPECT_EQ(newest_intact_checkpoint(folder_.path()), folder_ / "model.ckpt-1");
}

TEST_F(ShardedCheckpoint, IsWhatAMonitoredTrainingWritesAndGoesOnFrom) {
  const MonitoredTrainingSessionOptions options{.checkpoint_dir = folder_.path(),
                                                .save_checkpoint_steps = 2,
                                                .config = patient(),
                                                .master = target("worker0"),
                                                .sharded = true};
  Model model({kPs0, kPs1}, 3);
  const auto train = [&](int steps) {
    MonitoredTrainingSession session(model.graph, options);
    for (int i = 0; i < steps; ++i) session.run(model.train);
    session.close();
    return session.global_step();
  };
  EXPECT_EQ(train(2), 2);
  EXPECT_THAT(folder_.names(),
              IsSupersetOf({"model.ckpt-2.index.json", "model.ckpt-2-00000-of-00002.safetensors",
                            "model.ckpt-2-00001-of-00002.safetensors"}));
  EXPECT_EQ(train(1), 3);
  Graph local;
  EXPECT_THAT([&] { MonitoredTrainingSession(local, {.sharded = true}); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("sharded are of a session on a cluster")));
}

TEST_F(ShardedCheckpoint, IsRestoredByTheSameTasksByOthersAndInOneProcess) {
  std::string path;
  {
    Model model({kPs0, kPs1}, 3);
    Session session(model.graph, target("worker0"), through_socket());
    model.change(session);
    path = Saver(model.graph, {.sharded = true}).save(session, folder_ / "model.ckpt", 1);
  }
  const std::vector<std::pair<std::vector<std::string>, int>> layouts = {
      {{kPs0, kPs1}, 3}, {{kPs1}, 2}, {{"/job:worker/task:1", kPs0}, 1}};
  for (const auto& [tasks, parts] : layouts) {
    Session::reset(target("worker0"));
    Model model(tasks, parts);
    Session session(model.graph, target("worker0"), through_socket());
    Saver(model.graph).restore(session, path);
    model.expect_changed(session);
  }
  Model local({}, 2);
  Session session(local.graph);
  EXPECT_EQ(Saver(local.graph).restore(session, path).global_step, 1);
  local.expect_changed(session);
}

TEST_F(ShardedCheckpoint, OfOneProcessOneFileIsRestoredByTasks) {
  std::string path;
  {
    Model local({}, 2);
    Session session(local.graph);
    local.change(session);
    path = Saver(local.graph, {.sharded = true}).save(session, folder_ / "model.ckpt", 1);
    EXPECT_TRUE(std::filesystem::exists(path + ".safetensors"));
  }
  Model model({kPs0, kPs1}, 3);
  Session session(model.graph, target("worker0"), patient());
  Saver(model.graph).restore(session, path);
  model.expect_changed(session);
}

TEST_F(ShardedCheckpoint, SaysTheStepThatItIsOf) {
  Model model({kPs0, kPs1}, 1);
  Session session(model.graph, target("worker0"), patient());
  model.change(session);
  session.run(model.train);  // of another worker, since the step was read
  const std::string path = Saver(model.graph, {.sharded = true}).save(session, folder_ / "model.ckpt", 1);
  const Tensor saved(DType::i64, {});
  CheckpointReader reader(path);
  reader.read("global_step", saved);
  EXPECT_EQ(*saved.data<std::int64_t>(), 1);
  EXPECT_EQ(reader.index().global_step, 1);
}

TEST_F(ShardedCheckpoint, TakesThePlaceOfOneOfTheSameNameAndGoesWithAllItsFiles) {
  Model model({kPs0, kPs1}, 3);
  Session session(model.graph, target("worker0"), patient());
  model.change(session);
  Saver(model.graph).save(session, folder_ / "model.ckpt", 1);
  Saver saver(model.graph, {.max_to_keep = 1, .sharded = true});
  saver.save(session, folder_ / "model.ckpt", 1);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "model.ckpt-1.safetensors"));
  CheckpointReader(folder_ / "model.ckpt-1").verify();
  saver.save(session, folder_ / "model.ckpt", 2);
  EXPECT_THAT(folder_.names(), testing::SizeIs(4));
}

TEST_F(ShardedCheckpoint, IsNotMadeOfVariablesWithoutValues) {
  Model model({kPs0, kPs1}, 1);
  Session session(model.graph, target("worker0"), patient());
  session.run(model.step.initializer());
  session.run(model.a.initializer());
  EXPECT_THAT(
      [&] { Saver(model.graph, {.sharded = true}).save(session, folder_ / "model.ckpt", 1); },
      ThrowsMessage<FailedPreconditionError>(AllOf(HasSubstr("From /job:ps/replica:0/task:1"),
                                                   HasSubstr("Attempting to use uninitialized value b"))));
  EXPECT_THAT(folder_.names(), IsEmpty());
}

TEST_F(ShardedCheckpoint, WithADamagedShardIsPassedOver) {
  Model model({kPs0, kPs1}, 1);
  Session session(model.graph, target("worker0"), patient());
  model.change(session);
  Saver saver(model.graph, {.sharded = true});
  saver.save(session, folder_ / "model.ckpt", 1);
  saver.save(session, folder_ / "model.ckpt", 2);
  const std::string shard = folder_ / "model.ckpt-2-00001-of-00002.safetensors";
  {
    std::fstream file(shard, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(-1, std::ios::end);
    file.put('x');
  }
  EXPECT_EQ(newest_intact_checkpoint(folder_.path()), folder_ / "model.ckpt-1");
  std::filesystem::remove(shard);
  EXPECT_EQ(newest_intact_checkpoint(folder_.path()), folder_ / "model.ckpt-1");
  EXPECT_EQ(latest_checkpoint(folder_.path()), std::nullopt);
}

TEST_F(ShardedCheckpoint, ThatNoLongerFitsOnTheDiskLeavesTheOneBefore) {
  const std::string small = folder_ / "small";
  std::filesystem::create_directory(small);
  if (::mount("tmpfs", small.c_str(), "tmpfs", 0, "size=256k") != 0)
    GTEST_SKIP() << "this process may not mount a small disk";
  struct Unmount {
    ~Unmount() { ::umount2(path.c_str(), MNT_DETACH); }
    const std::string path;
  } const unmount{small};

  Graph graph;
  Scope s(graph);
  Scope ps0 = s.device(kPs0), ps1 = s.device(kPs1);
  const Variable little(ps0.named("little"), zeros(ps0, DType::f32, {8}));
  const Variable much(ps1.named("much"), zeros(ps1, DType::f32, {40'000}));
  Session session(graph, target("worker0"), patient());
  session.run(global_variables_initializer(s));
  Saver saver(graph, {.sharded = true});
  const std::string first = saver.save(session, small + "/model.ckpt", 1);
  EXPECT_THAT([&] { saver.save(session, small + "/model.ckpt", 2); },
              ThrowsMessage<ResourceExhaustedError>(
                  AllOf(HasSubstr("From /job:ps/replica:0/task:1"),
                        HasSubstr(small + "/model.ckpt-2-00001-of-00002.safetensors"))));
  EXPECT_THAT(files_in(small), Not(testing::Contains(HasSubstr("model.ckpt-2"))));
  EXPECT_EQ(latest_checkpoint(small), first);
  EXPECT_EQ(newest_intact_checkpoint(small), first);
  EXPECT_THAT(saver.last_checkpoints(), ElementsAre(first));
}

// ---- random numbers ----

class ResumedRandomNumbers : public ShardedCheckpoint, public testing::WithParamInterface<bool> {};

TEST_P(ResumedRandomNumbers, GoOnWhereTheCheckpointWasMade) {
  Model model({kPs0}, 1);
  Scope here = model.s.device("/job:worker/task:0"), there = model.s.device("/job:worker/task:1");
  const Output near = random_uniform(here.named("near"), DType::f32, {3});
  const Output far = random_normal(there.named("far"), DType::f32, {2});
  const auto draw = [&](Session& session) {
    std::vector<float> values;
    for (const Tensor& value : session.run({near, far}))
      values.insert(values.end(), value.span<float>().begin(), value.span<float>().end());
    return values;
  };
  Saver saver(model.graph, {.sharded = GetParam()});
  std::string path;
  std::vector<float> next, after;
  {
    Session session(model.graph, target("worker0"), through_socket());
    session.run(model.init);
    draw(session);
    draw(session);
    path = saver.save(session, folder_ / "model.ckpt", 2);
    EXPECT_EQ(CheckpointReader(path).index().random_positions.size(), 2u);
    next = draw(session);
    after = draw(session);
    EXPECT_NE(next, after);
  }
  Session fresh(model.graph, target("worker0"), through_socket());
  saver.restore(fresh, path);
  const std::string again = saver.save(fresh, folder_ / "model.ckpt", 3);
  EXPECT_EQ(CheckpointReader(again).index().random_positions, CheckpointReader(path).index().random_positions)
      << "what has not run yet keeps its place";
  EXPECT_EQ(draw(fresh), next);
  EXPECT_EQ(draw(fresh), after);
  saver.restore(fresh, path);
  EXPECT_EQ(draw(fresh), next) << "also of ops that have run";
}

INSTANTIATE_TEST_SUITE_P(Form, ResumedRandomNumbers, testing::Bool(),
                         [](const auto& form) { return form.param ? "Sharded" : "OneFile"; });

}  // namespace
}  // namespace kolo
