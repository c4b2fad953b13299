// Checkpoints of state that is spread over the ranks: residuals of compression, sums of passes, shards.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cmath>
#include <exception>
#include <functional>
#include <sstream>

#include <kolo/collectives/job/init.h>
#include <kolo/collectives/job/mpi_group.h>
#include <kolo/core/base/error.h>
#include <kolo/core/base/log.h>
#include <kolo/core/base/stop_signal.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/indexing.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/runtime/group.h>
#include <kolo/core/training/checkpoint_files.h>
#include <kolo/core/training/common_start.h>
#include <kolo/core/training/hooks.h>
#include <kolo/core/training/monitored_session.h>
#include <kolo/core/training/rank_state.h>
#include <kolo/optimizer/compression/compression.h>
#include <kolo/optimizer/distributed_optimizer.h>
#include <kolo/optimizer/registry.h>
#include <kolo/optimizer/rules.h>

#include "tests/core/training/temporary_directory.h"
#include "tests/optimizer/small_training.h"
#include "tests/support/paths.h"

namespace kolo {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Matches;
using testing::ThrowsMessage;

using CompressionPtr = std::shared_ptr<const Compression>;
constexpr std::int64_t kSteps = 10;

// The gradient of w [6,5], another one for each rank and step.
Tensor gradient_of(std::int64_t step) {
  Tensor x = Tensor::zeros(DType::f32, {6, 5});
  for (int i = 0; i < 30; ++i)
    x.data<float>()[i] =
        static_cast<float>(std::sin(0.7 * i * static_cast<double>(step + 1)) * std::cos(1.3 * rank() + i));
  return x;
}

struct Training {
  explicit Training(DistributedOptimizerOptions options, const std::string& rule = "momentum") {
    DistributedOptimizer optimizer(make_optimizer(rule, {.learning_rate = 0.1, .momentum = 0.9}),
                                   std::move(options));
    train = optimizer.minimize(s, mul(s, w, gradient));
  }
  // All that a checkpoint is to hold of this rank, bit for bit.
  std::map<std::string, std::string> state(Session& session) {
    std::map<std::string, std::string> all;
    for (const Variable& variable : global_variables(graph)) {
      const Tensor value = session.run(variable.read());
      all[variable.name()] = std::string(reinterpret_cast<const char*>(value.raw()), value.bytes());
    }
    return all;
  }

  Graph graph;
  Scope s{graph};
  Variable w{s.named("w"), zeros(s, DType::f32, {6, 5})};
  Output gradient = placeholder(s, DType::f32, {6, 5});
  Operation train;
};

using State = std::map<std::string, std::string>;

struct CallbackHook : SessionRunHook {
  explicit CallbackHook(std::function<void(RunContext&, int)> before) : before(std::move(before)) {}
  SessionRunArgs before_run(RunContext& context) override {
    if (before) before(context, run);
    return {};
  }
  void after_run(RunContext& context, const RunValues&) override {
    if (after) after(context, run);
    ++run;
  }
  std::function<void(RunContext&, int)> before, after;  // with the number of the run, from 0
  int run = 0;
};

class SpreadCheckpoint : public testing::Test {
 protected:
  SpreadCheckpoint() { set_log_level(LogLevel::error); }
  ~SpreadCheckpoint() override { clear_stop_signal(); }

  bool is_last() const { return rank() == size() - 1; }
  MonitoredTrainingSessionOptions options(std::optional<std::int64_t> save_steps = 1000) {
    return {.checkpoint_dir = rank() == 0 ? folder_.path() : "/proc/none",
            .save_checkpoint_steps = save_steps};
  }
  // Runs until the global step is `last_step`, the session stops or `body` throws; the state at the end.
  State train(Training& training, const MonitoredTrainingSessionOptions& options, std::int64_t last_step,
              const std::function<void(MonitoredTrainingSession&)>& after_step = {}) {
    MonitoredTrainingSession session(training.graph, options);
    while (session.global_step() < last_step && !session.should_stop()) {
      session.run({training.train}, {{training.gradient, gradient_of(session.global_step())}});
      if (after_step) after_step(session);
    }
    State state = training.state(session.session());
    session.close();
    return state;
  }
  State uninterrupted(const DistributedOptimizerOptions& options) {
    Training training(options);
    return train(training, {}, kSteps);
  }
  // A second program, from the checkpoint that is there.
  State continued(const DistributedOptimizerOptions& options_of_optimizer, std::int64_t from) {
    Training training(options_of_optimizer);
    MonitoredTrainingSessionOptions all = options();
    all.hooks = {std::make_shared<CallbackHook>([&](RunContext& context, int run) {
      const Variable step = find_global_step(training.graph);
      EXPECT_EQ(read_global_step(context.session(), step), from + run);
    })};
    return train(training, all, kSteps);
  }
  std::string newest_checkpoint() const {
    const auto names = list_checkpoints(folder_.path());
    return names.empty() ? "" : names.front();
  }

  TemporaryDirectory folder_;
};

class Residuals : public SpreadCheckpoint, public testing::WithParamInterface<std::string> {
 protected:
  static DistributedOptimizerOptions compressed() {
    return {.compression = GetParam() == "topk" ? topk_compression(0.1) : powersgd_compression(1)};
  }
};
INSTANTIATE_TEST_SUITE_P(Of, Residuals, testing::Values("topk", "powersgd"),
                         [](const auto& test) { return test.param; });

TEST_P(Residuals, AreTheSameBitsOnEachRankAfterARestore) {
  Training first(compressed());
  const State saved = train(first, options(), 4);
  Training second(compressed());
  MonitoredTrainingSession session(second.graph, options());
  EXPECT_EQ(second.state(session.session()), saved);
}

TEST_P(Residuals, GoOnAsWithoutAnInterruptionWhenStepsAreCounted) {
  Training training(compressed());
  // Nothing is saved at the end: the loop is left by an exception.
  EXPECT_ANY_THROW(train(training, options(3), kSteps, [&](MonitoredTrainingSession& session) {
    if (session.global_step() == 8) throw CancelledError("of the user's own");
  }));
  if (rank() == 0) {
    EXPECT_EQ(newest_checkpoint(), "model.ckpt-6");
  }
  EXPECT_EQ(continued(compressed(), 6), uninterrupted(compressed()));
}

TEST_P(Residuals, GoOnAsWithoutAnInterruptionWhenSecondsAreCounted) {
  Training training(compressed());
  MonitoredTrainingSessionOptions each_step = options({});
  each_step.save_checkpoint_secs = 1e-6;
  EXPECT_ANY_THROW(train(training, each_step, kSteps, [&](MonitoredTrainingSession& session) {
    if (session.global_step() == 7) throw CancelledError("of the user's own");
  }));
  if (rank() == 0) {
    EXPECT_EQ(newest_checkpoint(), "model.ckpt-7");
  }
  EXPECT_EQ(continued(compressed(), 7), uninterrupted(compressed()));
}

TEST_P(Residuals, GoOnAsWithoutAnInterruptionAfterASignal) {
  Training training(compressed());
  MonitoredTrainingSessionOptions signalled = options();
  signalled.hooks = {std::make_shared<CallbackHook>([&](RunContext&, int run) {
    if (run == 4 && is_last()) raise(SIGUSR1);
  })};
  train(training, signalled, kSteps);
  clear_stop_signal();
  EXPECT_EQ(continued(compressed(), 5), uninterrupted(compressed()));
}

TEST_P(Residuals, GoOnAsWithoutAnInterruptionAfterTheEndOfOneRanksData) {
  Training training(compressed());
  MonitoredTrainingSessionOptions ending = options();
  ending.hooks = {std::make_shared<CallbackHook>([&](RunContext&, int run) {
    if (run == 4 && is_last()) throw OutOfRangeError("no more data");
  })};
  train(training, ending, kSteps);
  EXPECT_EQ(continued(compressed(), 4), uninterrupted(compressed()));
}

TEST_F(SpreadCheckpoint, OfEqualStateIsTheSameBytes) {
  std::vector<std::string> files;
  for (int time = 0; time < 2; ++time) {
    Training training({.compression = topk_compression(0.1)});
    const TemporaryDirectory folder;
    MonitoredTrainingSessionOptions all = options();
    if (rank() == 0) all.checkpoint_dir = folder.path();
    train(training, all, 3);
    if (rank() != 0) continue;
    files.push_back(bytes_of_file(folder / "model.ckpt-3.safetensors") +
                    bytes_of_file(folder / "model.ckpt-3.index.json"));
  }
  if (rank() == 0) {
    EXPECT_EQ(files[0], files[1]);
  }
}

TEST_F(SpreadCheckpoint, KeepsEachRanksSumOfHalfAnUpdate) {
  const DistributedOptimizerOptions two_passes = {.backward_passes_per_step = 2};
  const auto run = [&](Training& training, const MonitoredTrainingSessionOptions& options, int begin,
                       int end) {
    MonitoredTrainingSession session(training.graph, options);
    for (int pass = begin; pass < end; ++pass)
      session.run({training.train}, {{training.gradient, gradient_of(pass)}});
    State state = training.state(session.session());
    session.close();
    return state;
  };
  Training whole(two_passes), first(two_passes), second(two_passes);
  const State expected = run(whole, {}, 0, 6);
  run(first, options(), 0, 3);
  EXPECT_EQ(run(second, options(), 3, 6), expected);
}

// Beside a training step, "w/Adam" of 11 elements, of which rank 0 holds 7, the last the rest, and those
// between none. Each step adds 1 + i to element i.
struct Sharded {
  Sharded() {
    const std::int64_t first = rank() == 0 ? 0 : 7, n = rank() == 0 ? 7 : rank() == size() - 1 ? 4 : 0;
    slot = Variable(s.named("w/shard/Adam"), zeros(s, DType::f32, {n}), {.trainable = false});
    set_rank_state(graph, slot,
                   {.kind = RankState::Kind::part, .whole = {"w/Adam", {11}}, .range = {.first = first}});
    std::vector<float> added;
    for (std::int64_t i = first; i < first + n; ++i) added.push_back(static_cast<float>(1 + i));
    expected = added;
    DistributedOptimizer optimizer(std::make_unique<MomentumOptimizer>(0.1f, 0.9f));
    train = group(s, {optimizer.minimize(s, mul(s, w, fill(s, DType::f32, {2}, 1 + rank()))),
                      assign_add(s, slot, constant(s, tensor_of(added)))});
  }
  std::vector<float> values(Session& session) { return elements<float>(session.run(slot.read())); }
  // After `steps` steps.
  std::vector<float> values_after(int steps) const {
    std::vector<float> all = expected;
    for (float& value : all) value *= static_cast<float>(steps);
    return all;
  }

  Graph graph;
  Scope s{graph};
  Variable w{s.named("w"), zeros(s, DType::f32, {2})};
  Variable slot;
  std::vector<float> expected;
  Operation train;
};

class Shards : public SpreadCheckpoint {
 protected:
  void SetUp() override {
    if (size() == 1) GTEST_SKIP() << "one rank holds all";
  }
  static std::vector<float> whole_after(int steps) {
    std::vector<float> all;
    for (int i = 1; i <= 11; ++i) all.push_back(static_cast<float>(i * steps));
    return all;
  }
  void train_to(MonitoredTrainingSession& session, const Sharded& model, std::int64_t step) {
    while (session.global_step() < step) session.run(model.train);
  }
};

TEST_F(Shards, AreSavedAsOneTensorAndRestoredInParts) {
  Sharded model;
  {
    MonitoredTrainingSession session(model.graph, options(2));
    train_to(session, model, 3);
    session.close();
  }
  if (rank() == 0) {
    EXPECT_THAT(folder_.names(), testing::Contains("model.ckpt-2.index.json"));
    const Tensor whole = SafetensorsReader(folder_ / "model.ckpt-3.safetensors").read("w/Adam");
    EXPECT_EQ(elements<float>(whole), whole_after(3));
  }
  Sharded again;
  MonitoredTrainingSession session(again.graph, options());
  EXPECT_EQ(again.values(session.session()), again.values_after(3));
  train_to(session, again, 5);
  EXPECT_EQ(again.values(session.session()), again.values_after(5));
}

// Steps 2 and 4 are evaluated, and the end; step 4 is worse, and the end no better than step 2.
TEST_F(Shards, AreSavedByTheHookThatKeepsTheBestCheckpoint) {
  Sharded model;
  int evaluations = 0;
  const auto evaluation = std::make_shared<EvaluationHook>(
      EvaluationOptions{.evaluate = [&](Session&) -> std::map<std::string, double> {
                          return {{"loss", 1.0 + ++evaluations}};
                        },
                        .every_n_steps = 2});
  MonitoredTrainingSessionOptions with_hooks = {.hooks = {evaluation}};
  if (rank() == 0)
    with_hooks.hooks.push_back(std::make_shared<BestCheckpointHook>(
        evaluation, BestCheckpointOptions{.checkpoint_dir = folder_ / "best"}));
  {
    MonitoredTrainingSession session(model.graph, with_hooks);
    train_to(session, model, 5);
    session.close();
  }
  EXPECT_EQ(evaluations, 3);
  if (rank() != 0) return;
  const Tensor whole = SafetensorsReader(folder_ / "best/best.ckpt-2.safetensors").read("w/Adam");
  EXPECT_EQ(elements<float>(whole), whole_after(2));
}

TEST_F(Shards, ChangePlacesWithAPlainVariable) {
  const auto make_plain = [](Graph& graph) {
    const Scope s(graph);
    const Variable w(s.named("w"), zeros(s, DType::f32, {2}));
    const Variable slot(s.named("w/Adam"), zeros(s, DType::f32, {11}), {.trainable = false});
    Variable(s.named("w/Momentum"), zeros(s, DType::f32, {2}), {.trainable = false});
    get_or_create_global_step(s);
    return slot;
  };
  Sharded model;
  {
    MonitoredTrainingSession session(model.graph, options());
    train_to(session, model, 3);
  }
  Graph plain;
  const Variable slot = make_plain(plain);
  {
    MonitoredTrainingSession session(plain, options());
    EXPECT_EQ(elements<float>(session.run(slot.read())), whole_after(3));
  }
  if (rank() == 0) {
    EXPECT_EQ(newest_checkpoint(), "model.ckpt-3");
  }
  Sharded again;
  MonitoredTrainingSession session(again.graph, options());
  EXPECT_EQ(again.values(session.session()), again.values_after(3));
}

TEST_F(Shards, OfAPlainSessionAreSavedOnceTheRanksHavePutThemTogether) {
  Sharded model;
  Session session(model.graph);
  detail::run_initializers(session, global_variables(model.graph));
  Saver saver(model.graph);
  EXPECT_THAT(
      [&] { saver.save(session, folder_ / "a"); },
      ThrowsMessage<FailedPreconditionError>(AllOf(HasSubstr("w/shard/Adam"), HasSubstr("GatheredState"))));
  {
    const GatheredState together(session);
    if (rank() == 0) {
      const std::string path = saver.save(session, folder_ / "a", {}, {}, &together);
      EXPECT_EQ(elements<float>(SafetensorsReader(path + ".safetensors").read("w/Adam")), whole_after(0));
    } else {
      EXPECT_THAT([&] { saver.save(session, folder_ / "a", {}, {}, &together); },
                  ThrowsMessage<FailedPreconditionError>(HasSubstr("rank 0 alone can save it")));
    }
    session.run(model.train);
    if (rank() == 0) {
      EXPECT_THAT([&] { saver.save(session, folder_ / "b", {}, {}, &together); },
                  ThrowsMessage<FailedPreconditionError>(HasSubstr("has changed since")));
    }
  }
  world_group().allgather("done");
}

void save_as_the_page_shows(Session& session, Saver& saver, const std::string& folder) {
  // page: loop
  const GatheredState together(session);  // on all ranks
  if (rank() == 0) saver.save(session, folder + "/model.ckpt", 200, {}, &together);
  // page end
}

TEST_F(Shards, AreSavedByALoopOfOnesOwnAsThePageShows) {
  const std::string source = bytes_of_file(source_path("tests/mpi/spread_checkpoint_test.cc"));
  const std::string begin = "  // page: loop\n", end = "  // page end\n";
  const auto from = source.find("\n" + begin) + 1 + begin.size();
  std::istringstream lines(source.substr(from, source.find("\n" + end, from) + 1 - from));
  std::string shown;
  for (std::string line; std::getline(lines, line);) shown += line.substr(2) + "\n";
  EXPECT_THAT(bytes_of_file(source_path("docs/checkpoints.md")), HasSubstr("```cpp\n" + shown + "```"));

  const std::string folder = world_group().broadcast(folder_.path(), 0);
  Sharded model;
  Session session(model.graph);
  detail::run_initializers(session, global_variables(model.graph));
  session.run(model.train);
  Saver saver(model.graph);
  save_as_the_page_shows(session, saver, folder);
  world_group().allgather("saved");
  Session restored(model.graph);
  saver.restore(restored, folder + "/model.ckpt-200");
  EXPECT_EQ(model.values(restored), model.values_after(1));
  world_group().allgather("restored");
}

TEST_F(Shards, AreNotSavedWhereOneRankFailsBehindTheLastStep) {
  Sharded model;
  MonitoredTrainingSessionOptions failing = options();
  const auto hook = std::make_shared<CallbackHook>(nullptr);
  hook->after = [&](RunContext&, int run) {
    if (run == 2 && is_last()) throw InvalidArgumentError("a bad sample");
  };
  failing.hooks = {std::make_shared<StopAtStepHook>(3), hook};
  std::string error;
  try {
    MonitoredTrainingSession session(model.graph, failing);
    while (!session.should_stop()) session.run(model.train);
    session.close();
  } catch (const Error& e) {
    error = e.what();
  }
  EXPECT_EQ(error, is_last() ? "a bad sample" : fmt::format("rank {}: a bad sample", size() - 1));
  if (rank() == 0) {
    EXPECT_EQ(newest_checkpoint(), "model.ckpt-0");
  }
}

// Each rank updates its part of w and has the slots of that part alone.
TEST_F(Shards, OfAShardedOptimizerMakeTheSameCheckpointAsThePlainOne) {
  for (const std::string rule : {"adam", "momentum"}) {
    std::vector<std::string> files;
    // Whether the first four steps, and the others, are sharded; a checkpoint stands between them.
    for (const auto& [first, second] :
         {std::pair(false, false), {true, true}, {true, false}, {false, true}}) {
      const TemporaryDirectory folder;
      MonitoredTrainingSessionOptions all = options();
      if (rank() == 0) all.checkpoint_dir = folder.path();
      Training begun({.sharded = first}, rule), ended({.sharded = second}, rule);
      EXPECT_EQ(rank_parts(begun.graph).empty(), !first);
      train(begun, all, 4);
      train(ended, all, kSteps);
      if (rank() == 0) files.push_back(bytes_of_file(folder / "model.ckpt-10.safetensors"));
    }
    for (const std::string& file : files) EXPECT_TRUE(!file.empty() && file == files[0]) << rule;
  }
}

// Behind the reduction of a step: it fails where it is asked to, on the last rank.
std::exception_ptr check_error;
const RegisterOp check_op(OpSchema("TestSpreadCheck").stateful().no_gradient());
const RegisterKernel check_kernel("TestSpreadCheck", "CPU", {}, [](KernelContext&) {
  if (check_error) std::rethrow_exception(check_error);
});

// The end of some data, too: the others have applied the step.
TEST_F(Shards, AreNotSavedWhereOneRankFailsBehindTheReductionOfTheStep) {
  for (const auto& thrown : {std::make_exception_ptr(InvalidArgumentError("a bad sum")),
                             std::make_exception_ptr(OutOfRangeError("a bad sum"))}) {
    Sharded model;
    const Operation check = model.s.control_dependencies({model.train}).add("TestSpreadCheck", {});
    std::string error;
    try {
      MonitoredTrainingSession session(model.graph, options(2));
      while (!session.should_stop()) {
        check_error = is_last() && session.global_step() == 1 ? thrown : nullptr;
        session.run(check);
      }
    } catch (const Error& e) {
      error = e.what();
    }
    check_error = nullptr;
    EXPECT_THAT(error, HasSubstr("a bad sum"));
    EXPECT_EQ(Matches(HasSubstr(fmt::format("rank {}: ", size() - 1)))(error), !is_last()) << error;
    if (rank() == 0) {
      EXPECT_EQ(newest_checkpoint(), "model.ckpt-0");
    }
  }
}

// A step whose only reduction is of rows: the requests travel with their number.
TEST_F(SpreadCheckpoint, ComesAfterAStepThatReducesRowsAlone) {
  Graph graph;
  Scope s(graph);
  const Variable table(s.named("table"), zeros(s, DType::f32, {50, 2}));
  const Variable own(s.named("own"), zeros(s, DType::f32, {}), {.trainable = false});
  set_rank_state(graph, own, {.kind = RankState::Kind::own});
  DistributedOptimizer optimizer(std::make_unique<MomentumOptimizer>(0.1f, 0.9f));
  const Operation train =
      group(s, {optimizer.minimize(s, gather(s, table, constant(s, Tensor::of<std::int32_t>({1}, {3})))),
                assign_add(s, own, fill(s, DType::f32, {}, rank() + 1))});
  EXPECT_ANY_THROW({
    MonitoredTrainingSession session(graph, options(2));
    for (int step = 0; step < 3; ++step) session.run(train);
    throw CancelledError("of the user's own");
  });
  MonitoredTrainingSession session(graph, options());
  EXPECT_EQ(session.global_step(), 2);
  EXPECT_EQ(session.run(own.read()).value<float>(), static_cast<float>(2 * (rank() + 1)));
}

// What goes through the group of all ranks.
class CountingGroup final : public Group {
 public:
  CountingGroup() : group_(detail::current_runtime()) {}
  int rank() const override { return group_.rank(); }
  int size() const override { return group_.size(); }
  void broadcast(std::span<const Tensor> tensors, int root) override {
    ++calls;
    group_.broadcast(tensors, root);
  }
  void gather(const Tensor& own, std::span<const Tensor> parts, int root) override {
    ++calls;
    group_.gather(own, parts, root);
  }
  void scatter(std::span<const Tensor> parts, const Tensor& own, int root) override {
    ++calls;
    group_.scatter(parts, own, root);
  }
  std::string broadcast(const std::string& text, int root) override {
    ++calls;
    return group_.broadcast(text, root);
  }
  std::vector<std::string> allgather(const std::string& text) override {
    ++calls;
    return group_.allgather(text);
  }
  int calls = 0;

 private:
  detail::MpiGroup group_;
};

class Messages : public SpreadCheckpoint {
 protected:
  void SetUp() override {
    if (size() == 1) GTEST_SKIP() << "one rank sends none";
    auto group = std::make_unique<CountingGroup>();
    counting_ = group.get();
    set_world_group(std::move(group));
  }
  void TearDown() override {
    if (counting_ != nullptr) set_world_group(std::make_unique<detail::MpiGroup>(detail::current_runtime()));
  }
  // Calls during steps 1 … 6 and the end, of which 2, 4 and 6 are saved.
  std::vector<int> calls_of(const DistributedOptimizerOptions& optimizer) {
    Training training(optimizer);
    std::vector<int> calls;
    {
      MonitoredTrainingSession session(training.graph, options(2));
      for (int step = 0; step < 6; ++step) {
        const int before = counting_->calls;
        session.run({training.train}, {{training.gradient, gradient_of(step)}});
        calls.push_back(counting_->calls - before);
      }
      calls.push_back(-counting_->calls);
      session.close();
    }
    calls.back() += counting_->calls;
    return calls;
  }

  CountingGroup* counting_ = nullptr;
};

TEST_F(Messages, AreNoneBesideTheStepsWhereNoStateIsSpread) {
  EXPECT_THAT(calls_of({}), ElementsAre(0, 0, 0, 0, 0, 0, 0));
}

TEST_F(Messages, AreNoneBesideTheStepsThatAreNotSavedWhereStateIsSpread) {
  const auto calls = calls_of({.compression = topk_compression(0.1)});
  EXPECT_EQ(calls[0] + calls[2] + calls[4], 0);
  EXPECT_GT(calls[1], 0);
  EXPECT_THAT(calls, ElementsAre(0, calls[1], 0, calls[1], 0, calls[1], calls[1]));
}

}  // namespace
}  // namespace kolo
