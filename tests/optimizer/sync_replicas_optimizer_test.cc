#include <kolo/optimizer/sync_replicas_optimizer.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <future>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include <kolo/core/base/error.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/indexing.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/ops/reductions.h>
#include <kolo/core/training/monitored_session.h>
#include <kolo/optimizer/rules.h>

namespace kolo {
namespace {

using testing::ElementsAre;
using testing::FloatEq;
using testing::HasSubstr;
using testing::Pointwise;
using testing::ThrowsMessage;

// One variable, whose gradient each worker feeds, and the chief's updates on a thread. The workers are
// threads of one session: they share the local step, which they feed where it matters.
class Replicas {
 public:
  Replicas(int aggregated, int replicas, int num_tokens, const Tensor& first, double rate)
      : w_(s_.named("w"), constant(s_, first)),
        gradient_(placeholder(s_, DType::f32, first.shape())),
        step_(get_or_create_global_step(s_)),
        optimizer_(std::make_unique<GradientDescentOptimizer>(rate), aggregated, replicas),
        train_(optimizer_.apply_gradients(s_, std::vector<GradientPair>{{gradient_, w_}},
                                          {.global_step = step_})),
        size_(queue_size_of_tokens()),
        dropped_(s_.add("AccumulatorNumDropped", {graph_.find_output("w/grad_accum:0")})) {
    const Operation locals = variables_initializer(s_, local_variables(graph_), "local_init");
    session_.run(global_variables_initializer(s_));
    session_.run(locals);
    session_.run(optimizer_.chief_init_op());
    session_.run(optimizer_.init_tokens_op(num_tokens));
    chief_ = std::jthread([this](const std::stop_token& stop) {
      try {
        while (true) session_.run({optimizer_.update_op()}, {}, {.stop_token = stop});
      } catch (const CancelledError&) {
      }
    });
  }

  std::future<void> push(Tensor gradient) {
    return std::async(std::launch::async, [this, gradient] { run({{gradient_, gradient}}); });
  }
  std::future<void> push(float gradient) { return push(Tensor::scalar(gradient)); }
  /// local: what the worker has in its variable of that name.
  void push_with(float gradient, const std::string& local, std::int64_t value) {
    run({{gradient_, Tensor::scalar(gradient)}, {local + "/read:0", Tensor::scalar(value)}});
  }
  std::vector<float> w() {
    const Tensor value = session_.run(w_.read());
    return {value.span<float>().begin(), value.span<float>().end()};
  }
  std::int64_t global_step() { return session_.run(step_.read()).value<std::int64_t>(); }
  std::int64_t local_step() { return session_.run("sync_rep_local_step/read:0").value<std::int64_t>(); }
  int tokens() { return session_.run(size_).value<std::int32_t>(); }
  std::int64_t dropped() { return session_.run(dropped_).value<std::int64_t>(); }

 private:
  // As a worker that has had no token, unless the feeds say which.
  void run(Feeds feeds) {
    const std::string last = "sync_rep_last_token/read:0";
    if (std::none_of(feeds.begin(), feeds.end(),
                     [&](const auto& feed) { return feed.first.tensor_name == last; }))
      feeds.emplace_back(last, Tensor::scalar<std::int64_t>(-1));
    session_.run(train_, feeds);
  }
  Output queue_size_of_tokens() { return s_.add("QueueSize", {graph_.find_output("sync_token_q:0")}); }

  Graph graph_;
  Scope s_{graph_};
  Variable w_;
  Output gradient_;
  Variable step_;
  SyncReplicasOptimizer optimizer_;
  Operation train_;
  Output size_, dropped_;
  Session session_{graph_};
  std::jthread chief_;
};

// Row 35 of the cluster's examples.
TEST(SyncReplicas, ApplyTheMeanOfAllGradientsOnce) {
  Replicas replicas(2, 2, 0, Tensor::of<float>({2}, {1, -2}), .5);
  auto a = replicas.push(Tensor::of<float>({2}, {.2f, .4f}));
  auto b = replicas.push(Tensor::of<float>({2}, {.6f, -.8f}));
  a.get();
  b.get();
  EXPECT_THAT(replicas.w(), Pointwise(FloatEq(), {.8f, -1.9f}));
  EXPECT_EQ(replicas.global_step(), 1);
  EXPECT_EQ(replicas.tokens(), 0);
}

// Row 36.
TEST(SyncReplicas, DropTheGradientOfABackupThatComesLate) {
  Replicas replicas(2, 3, 0, Tensor::scalar(1.0f), .1);
  auto a = replicas.push(2), b = replicas.push(4);
  a.get();
  b.get();
  EXPECT_EQ(replicas.tokens(), 1);
  replicas.push_with(50, "sync_rep_local_step", 0);
  EXPECT_THAT(replicas.w(), ElementsAre(FloatEq(.7f)));
  EXPECT_EQ(replicas.dropped(), 1);
  EXPECT_EQ(replicas.local_step(), 1);
  EXPECT_EQ(replicas.tokens(), 0);
}

// It would else have to push, in vain, for each update that it has missed, and their tokens would stay.
TEST(SyncReplicas, TakeABackupThatWasAwayToThePresentStep) {
  Replicas replicas(2, 3, 0, Tensor::scalar(1.0f), .1);
  for (int update = 1; update <= 5; ++update) {
    const auto push = [&] { replicas.push_with(1, "sync_rep_last_token", update - 1); };
    auto a = std::async(std::launch::async, push);
    push();
    a.get();
    EXPECT_EQ(replicas.tokens(), 1);
  }
  replicas.push_with(50, "sync_rep_local_step", 0);
  EXPECT_EQ(replicas.local_step(), 5);
  EXPECT_EQ(replicas.tokens(), 0);
  EXPECT_EQ(replicas.dropped(), 1);
}

// Row 37.
TEST(SyncReplicas, TakeSeveralGradientsOfAWorker) {
  Replicas replicas(4, 2, 2, Tensor::scalar(1.0f), 1);
  auto a = replicas.push(1), b = replicas.push(3);
  a.get();
  b.get();
  EXPECT_EQ(replicas.global_step(), 0);
  a = replicas.push(2);
  b = replicas.push(6);
  a.get();
  b.get();
  EXPECT_THAT(replicas.w(), ElementsAre(-2));
  EXPECT_EQ(replicas.global_step(), 1);
  EXPECT_EQ(replicas.local_step(), 1);
  EXPECT_EQ(replicas.tokens(), 2);
}

// The other token of a step is the other worker's, even if that one has not come for it yet.
TEST(SyncReplicas, GiveAWorkerOneTokenOfAStep) {
  Replicas replicas(2, 2, 2, Tensor::scalar(1.0f), .5);
  replicas.push(1).get();
  EXPECT_EQ(replicas.local_step(), 0);
  EXPECT_EQ(replicas.tokens(), 1);
  replicas.push_with(3, "sync_rep_last_token", 0);
  EXPECT_EQ(replicas.local_step(), 1);
  EXPECT_EQ(replicas.tokens(), 1);  // of step 1: who comes now is to push for that one
}

// It would count beside the one that the same worker pushes when it has begun anew.
TEST(SyncReplicas, RefuseAGradientOfWhoBeganBeforeTheChief) {
  Replicas replicas(2, 2, 0, Tensor::scalar(1.0f), .5);
  EXPECT_THROW(replicas.push_with(50, "sync_rep_local_generation", 0), AbortedError);
  auto a = replicas.push(1), b = replicas.push(3);
  a.get();
  b.get();
  EXPECT_THAT(replicas.w(), ElementsAre(0));
  EXPECT_EQ(replicas.global_step(), 1);
}

class SyncReplicasOptimizers : public testing::Test {
 protected:
  std::vector<GradientPair> pairs() { return {{w_.read(), w_}}; }
  Graph graph_;
  Scope s_{graph_};
  Variable w_{s_.named("w"), constant(s_, 1.0f)};
  Variable step_ = get_or_create_global_step(s_);
  SyncReplicasOptimizer optimizer_{std::make_unique<GradientDescentOptimizer>(.5), 5, 3};
};

// Row 38.
TEST_F(SyncReplicasOptimizers, NeedTokensForTheFirstStep) {
  optimizer_.apply_gradients(s_, pairs(), {.global_step = step_});
  EXPECT_THAT([&] { optimizer_.init_tokens_op(1); },
              ThrowsMessage<InvalidArgumentError>(
                  HasSubstr("Too few tokens to finish the first step: 1 (given) vs 2 (needed)")));
  EXPECT_NO_THROW(optimizer_.init_tokens_op(2));
}

TEST_F(SyncReplicasOptimizers, AreAskedForTheirOpsBehindApplyGradients) {
  EXPECT_THAT([&] { optimizer_.init_tokens_op(); },
              ThrowsMessage<FailedPreconditionError>(
                  HasSubstr("get_init_tokens_op() should be called after apply_gradients().")));
  EXPECT_THAT([&] { optimizer_.chief_init_op(); },
              ThrowsMessage<FailedPreconditionError>(HasSubstr("Should be called after apply_gradients().")));
  EXPECT_THROW(optimizer_.make_session_run_hook(true), FailedPreconditionError);
}

TEST_F(SyncReplicasOptimizers, RefuseWhatTheyCannotApply) {
  EXPECT_THAT([&] { optimizer_.apply_gradients(s_, {}, {.global_step = step_}); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("Must supply at least one variable")));
  EXPECT_THAT([&] { optimizer_.apply_gradients(s_, pairs()); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("Global step is required to check staleness")));
  EXPECT_THROW(SyncReplicasOptimizer(std::make_unique<GradientDescentOptimizer>(.5), 0),
               InvalidArgumentError);
}

TEST_F(SyncReplicasOptimizers, LogTheirNumbers) {
  testing::internal::CaptureStderr();
  const SyncReplicasOptimizer another(std::make_unique<GradientDescentOptimizer>(.5), 4, 6);
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("SyncReplicasV2: replicas_to_aggregate=4; total_num_replicas=6"));
}

TEST_F(SyncReplicasOptimizers, RefuseAModelThatIsNotReady) {
  optimizer_.apply_gradients(s_, pairs(), {.global_step = step_});
  const auto hook = optimizer_.make_session_run_hook(true);
  Session session(graph_);
  Coordinator coordinator;
  EXPECT_THAT([&] { hook->after_create_session(session, coordinator); },
              ThrowsMessage<FailedPreconditionError>(HasSubstr(
                  "Init operations did not make model ready for SyncReplicasOptimizer local_init.")));
}

// The example of docs/optimizers.md.
TEST(SyncReplicasHook, TrainsWithTheSessionsThread) {
  Graph graph;
  Scope s(graph);
  const Variable w(s.named("w"), constant(s, 4.0f));
  const Variable step = get_or_create_global_step(s);
  const Output loss = mul(s, constant(s, .5f), square(s, w));
  SyncReplicasOptimizer optimizer(std::make_unique<GradientDescentOptimizer>(0.25), 1);
  const Operation train = optimizer.minimize(s, loss);
  MonitoredTrainingSession training(graph, {.hooks = {optimizer.make_session_run_hook(true, 0)}});
  for (int i = 0; i < 3; ++i) training.run(train);
  EXPECT_EQ(training.session().run(step.read()).value<std::int64_t>(), 3);
  EXPECT_FLOAT_EQ(training.session().run(w.read()).value<float>(), 4 * .75f * .75f * .75f);
  training.close();
}

TEST(SyncReplicasHook, ApplyTheMeanOfRows) {
  Graph graph;
  Scope s(graph);
  const Variable table(s.named("table"), zeros(s, DType::f32, {4, 1}));
  const Output ids = placeholder(s, DType::i32, {-1});
  SyncReplicasOptimizer optimizer(std::make_unique<GradientDescentOptimizer>(1), 2);
  const Operation train = optimizer.minimize(s, reduce_sum(s, gather(s, table, ids)));
  MonitoredTrainingSession training(graph, {.hooks = {optimizer.make_session_run_hook(true, 2)}});
  Session& session = training.session();
  session.run(train, {{ids, Tensor::of<std::int32_t>({2}, {0, 3})}});
  session.run(train, {{ids, Tensor::of<std::int32_t>({3}, {3, 3, 1})}});
  while (session.run("global_step/read:0").value<std::int64_t>() < 1) std::this_thread::yield();
  // Row 3: 1 of the first, 2 of the second gradient.
  EXPECT_THAT(session.run(table.read()).span<float>(), ElementsAre(-1, -1, 0, -1.5f));
  training.close();
}

// A worker that waits for a token of a chief who lacks another worker's gradient.
class SyncReplicasWorker : public testing::Test {
 protected:
  SyncReplicasWorker() {
    session_.run(global_variables_initializer(s_));
    hook_->after_create_session(session_, coordinator_);
    worker_ = std::async(std::launch::async, [this] { session_.run(train_); });
  }

  Graph graph_;
  Scope s_{graph_};
  const Variable w_{s_.named("w"), constant(s_, 4.0f)};
  SyncReplicasOptimizer optimizer_{std::make_unique<GradientDescentOptimizer>(.25), 2};
  const Operation train_ = optimizer_.minimize(s_, square(s_, w_));
  Session session_{graph_};
  const std::shared_ptr<SessionRunHook> hook_ = optimizer_.make_session_run_hook(true, 0);
  Coordinator coordinator_;
  std::future<void> worker_;
};

TEST_F(SyncReplicasWorker, EndsWithTheChief) {
  coordinator_.join(std::chrono::seconds(10));
  EXPECT_THAT([&] { worker_.get(); },
              ThrowsMessage<OutOfRangeError>(HasSubstr("FIFOQueue 'sync_token_q' is closed")));
}

// The chief will come back: who waits for a token is not told that the data are over.
TEST_F(SyncReplicasWorker, FindsTheQueueOpenBehindAnError) {
  coordinator_.request_stop(std::make_exception_ptr(AbortedError("a worker is gone")));
  coordinator_.join(std::chrono::seconds(10));
  session_.close();
  try {
    worker_.get();
    FAIL() << "it has no token";
  } catch (const Error& error) {
    EXPECT_NE(error.code(), Code::out_of_range) << error.what();
  }
}

TEST(SyncReplicas, RefuseTypesThatNobodySumsBeforeAnythingIsAdded) {
  Graph graph;
  Scope s(graph);
  const Variable w(s.named("w"), cast(s, constant(s, 4.0f), DType::f16));
  const Variable step = get_or_create_global_step(s);
  SyncReplicasOptimizer optimizer(std::make_unique<GradientDescentOptimizer>(.25), 1);
  const GradientPair pair{cast(s, constant(s, 1.0f), DType::f16), w};
  const int nodes = graph.num_nodes();
  EXPECT_THAT([&] { optimizer.apply_gradients(s, std::span(&pair, 1), {.global_step = step}); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("sums gradients of float and double")));
  EXPECT_EQ(graph.num_nodes(), nodes);
}

}  // namespace
}  // namespace kolo
