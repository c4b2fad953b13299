#include <kolo/core/cluster/worker/local_worker.h>

#include <gmock/gmock.h>

#include <atomic>
#include <future>

#include <kolo/core/base/text.h>
#include <kolo/core/cluster/master/task_error.h>
#include <kolo/core/kernels/cancellable.h>
#include <kolo/core/kernels/kernel.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/ops/queues.h>
#include <kolo/core/ops/random.h>
#include <kolo/core/ops/variables.h>

#include "scripted_workers.h"
#include "small_cluster.h"
#include "tests/core/training/temporary_directory.h"

namespace kolo::detail {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;
using ::testing::Throws;
using ::testing::ThrowsMessage;

const RegisterOp failing_op(OpSchema("FailForTest").input("x").output("y").stateful());
const RegisterKernel failing("FailForTest", "CPU", {},
                             [](KernelContext&) { throw InvalidArgumentError("bad k"); });

class LocalWorkers : public ::testing::Test {
 protected:
  // Until `task` has a step that waits, for 20 s at most.
  TaskStatus::Wait first_wait(const std::string& task) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (std::chrono::steady_clock::now() < deadline)
      if (const auto waits = status_of(cluster_[task]).waits; !waits.empty()) return waits.front();
    throw DeadlineExceededError("{} waits for nothing", task);
  }

  SmallCluster cluster_{{kPs0, kPs1, kWorker0, kWorker1}};
  Graph graph_;
  Scope s_{graph_};
};

// Row 16.
TEST_F(LocalWorkers, KeepVariablesBeyondSessions) {
  const Variable v(s_.device(kPs0).named("v"), constant(s_, 12.5f));
  SmallSession(cluster_, graph_, kWorker0, "a").run({v.initializer()});
  SmallSession later(cluster_, graph_, kWorker1, "b");
  EXPECT_EQ(later.run({v}).at(0).value<float>(), 12.5f);
}

// Rows 17 and 18, as far as a task is concerned.
TEST_F(LocalWorkers, DropTheContainersThatAreNamed) {
  const Scope ps = s_.device(kPs0);
  const Variable u(ps.container("exp1").named("u"), constant(s_, 3.0f));
  const Variable v(ps.named("v"), constant(s_, 4.0f));
  SmallSession session(cluster_, graph_, kWorker0, "a");
  session.run({u.initializer(), v.initializer()});
  cleanup_containers(cluster_[kPs0], {"exp1"}, {});
  EXPECT_THAT([&] { session.run({u}); },
              ThrowsMessage<FailedPreconditionError>(
                  AllOf(StartsWith("From " + kPs0 + ":\n"), HasSubstr("uninitialized value u"))));
  EXPECT_EQ(session.run({v}).at(0).value<float>(), 4.0f);
  cleanup_containers(cluster_[kPs0], {}, {});
  EXPECT_THAT([&] { session.run({v}); },
              ThrowsMessage<FailedPreconditionError>(HasSubstr("uninitialized value v")));
}

// Row 19.
TEST_F(LocalWorkers, RefuseAVariableOfAnotherShape) {
  const Variable v(s_.device(kPs0).named("v"), zeros(s_, DType::f32, {3, 2}));
  SmallSession session(cluster_, graph_, kWorker0, "a");
  session.run({v.initializer()});
  Graph other;
  const Scope s(other);
  const Variable w(s.device(kPs0).named("v"), zeros(s, DType::f32, {3, 4}));
  SmallSession second(cluster_, other, kWorker0, "b");
  EXPECT_THAT([&] { second.run({w.initializer()}); },
              ThrowsMessage<InvalidArgumentError>(
                  HasSubstr("Variable v is float [3,2] in container \"localhost\" of " + kPs0 +
                            "; this graph declares float [3,4]")));
  EXPECT_EQ(session.run({v}).at(0).shape(), Shape({3, 2}));
}

TEST_F(LocalWorkers, KeepAnIsolatedSessionsVariablesApart) {
  const Variable v(s_.device(kPs0).named("v"), constant(s_, 1.0f));
  SmallSession isolated(cluster_, graph_, kWorker0, "a", {.isolate_session_state = true});
  isolated.run({v.initializer()});
  EXPECT_EQ(isolated.run({v}).at(0).value<float>(), 1.0f);
  SmallSession other(cluster_, graph_, kWorker0, "b");
  EXPECT_THAT([&] { other.run({v}); }, Throws<FailedPreconditionError>());
}

TEST_F(LocalWorkers, ShareWhatHasOneSharedName) {
  const Variable v(s_.device(kPs0).named("v"), constant(s_, 8.0f), {.shared_name = "both"});
  SmallSession(cluster_, graph_, kWorker0, "a").run({v.initializer()});
  Graph other;
  const Scope s(other);
  const Variable w(s.device(kPs0).named("w"), constant(s, 0.0f), {.shared_name = "both"});
  EXPECT_EQ(SmallSession(cluster_, other, kWorker0, "b").run({w}).at(0).value<float>(), 8.0f);
}

// Row 21.
TEST_F(LocalWorkers, TellTheErrorOfTheKernelThatFailed) {
  const FIFOQueue queue(s_.device(kWorker0).named("q"), {DType::f32}, {.shapes = {Shape()}});
  const Output waits = dequeue(s_.device(kWorker0), queue)[0];
  const Output fails =
      s_.device(kPs1).add("FailForTest", {constant(s_.device(kPs1), 1.0f)}, {}, "culprit").output(0);
  SmallSession session(cluster_, graph_, kWorker1, "a");
  EXPECT_THAT(
      [&] {
        session.run({waits, fails});
      },
      ThrowsMessage<InvalidArgumentError>(AllOf(StartsWith("From " + kPs1 + ":\n"), HasSubstr("bad k"),
                                                HasSubstr("culprit"), HasSubstr("FailForTest"))));
  EXPECT_THAT(status_of(cluster_[kWorker0]).waits, IsEmpty());
  EXPECT_EQ(session.run({constant(s_.device(kWorker0), 2.0f)}).at(0).value<float>(), 2.0f);
}

// Of the task that is lost the master knows itself.
TEST_F(LocalWorkers, TellTheLossOfASenderAsWhatItIs) {
  const Output x = constant(s_.device(kPs1), 1.0f);
  const Output y = neg(s_.device(kPs0), x);
  SmallSession session(cluster_, graph_, kWorker0, "a");
  std::vector<StepPart> parts = session.cut({y});
  const auto part = std::find_if(parts.begin(), parts.end(), [](const auto& p) { return p.task == kPs0; });
  ASSERT_NE(part, parts.end());
  ScriptedPeers lost({kPs0, kPs1, kWorker0});
  lost.at(kPs1).on_receive = [](TensorReceiver& receiver) {
    receiver.ended(std::make_exception_ptr(UnavailableError("node2:2223: connection closed")));
  };
  cluster_[kPs0].set_peers(lost);
  RunPartRequest request;
  request.session = "a";
  request.step = 1;
  request.request_id = 77;
  request.part = register_part(
      cluster_[kPs0], "a",
      {.graph = std::move(part->graph), .feeds = {}, .fetches = {}, .targets = std::move(part->targets)}, {});
  std::promise<std::exception_ptr> ended;
  const auto call = cluster_[kPs0].run_part(
      request, {}, [&](std::exception_ptr error, PartResult) { ended.set_value(std::move(error)); });
  auto error = ended.get_future();
  ASSERT_EQ(error.wait_for(std::chrono::seconds(30)), std::future_status::ready);
  const std::exception_ptr told = error.get();
  cluster_[kPs0].set_peers(cluster_);
  EXPECT_TRUE(is_consequence(told));
  EXPECT_EQ(code_of(told), Code::unavailable);
  EXPECT_EQ(message_of(told), "nothing comes from " + kPs1 + ": node2:2223: connection closed");
}

TEST_F(LocalWorkers, ShowOneStateOfAVariableThatOthersUpdate) {
  constexpr std::int64_t kElements = 100'000;
  const Scope ps = s_.device(kPs0);
  const Variable v(ps.named("v"), zeros(ps, DType::f32, {kElements}));
  std::vector<Output> assigns;
  for (int i = 1; i <= 4; ++i) assigns.push_back(assign(ps, v, fill(ps, DType::f32, {kElements}, i)));
  SmallSession reader(cluster_, graph_, kWorker0, "reader"), on_ps(cluster_, graph_, kPs0, "on_ps");
  reader.run({v.initializer()});
  std::atomic<bool> stop = false;
  std::vector<std::thread> writers;
  for (int i = 0; i < 4; ++i)
    writers.emplace_back([&, i] {
      SmallSession session(cluster_, graph_, kPs0, fmt::format("writer{}", i));
      while (!stop) session.run({Operation(assigns[static_cast<std::size_t>(i)].node)});
    });
  for (int i = 0; i < 20; ++i)
    for (SmallSession* session : {&reader, &on_ps}) {
      const Tensor value = session->run({v}).at(0);
      EXPECT_THAT(value.span<float>(), Each(value.span<float>()[0]));
    }
  stop = true;
  for (std::thread& writer : writers) writer.join();
}

TEST_F(LocalWorkers, AddToWhatTwoSessionsUpdate) {
  const Scope ps = s_.device(kPs0);
  const Variable v(ps.named("v"), constant(ps, 0.0f));
  const Output more = assign_add(ps, v, constant(ps, 1.0f));
  SmallSession a(cluster_, graph_, kWorker0, "a"), b(cluster_, graph_, kWorker1, "b");
  a.run({v.initializer()});
  std::thread other([&] {
    for (int i = 0; i < 20; ++i) b.run({Operation(more.node)});
  });
  for (int i = 0; i < 20; ++i) a.run({Operation(more.node)});
  other.join();
  EXPECT_EQ(a.run({v}).at(0).value<float>(), 40.0f);
}

TEST_F(LocalWorkers, RefuseARequestThatComesTwice) {
  const Output x = constant(s_.device(kWorker0), 1.0f);
  SmallSession session(cluster_, graph_, kWorker0, "a");
  auto parts = session.cut({x});
  const auto part =
      register_part(cluster_[kWorker0], "a",
                    {.graph = parts[0].graph, .feeds = {}, .fetches = parts[0].fetches, .targets = {}}, {});
  RunPartRequest request;
  request.session = "a";
  request.part = part;
  request.step = 7;
  request.request_id = 1ull << 60;
  StepCancellation cancellation;
  EXPECT_THAT(cluster_[kWorker0].run_part_here(request, {}, cancellation).fetches, SizeIs(1));
  EXPECT_THAT([&] { cluster_[kWorker0].run_part_here(request, {}, cancellation); },
              ThrowsMessage<AbortedError>(HasSubstr("Duplicate request")));
  request.request_id += 1;
  EXPECT_THAT([&] { cluster_[kWorker0].run_part_here(request, {}, cancellation); },
              ThrowsMessage<Error>(HasSubstr("Step 7 is over")));
}

TEST_F(LocalWorkers, KeepAsManySessionsAsTheyMay) {
  LocalWorker worker({.task = kPs0, .config = {}, .sessions = 2});
  for (const char* handle : {"a1", "a2"}) create_session(worker, {handle, kPs0, {}}, {});
  EXPECT_THAT(
      [&] {
        create_session(worker, {"a3", kPs0, {}}, {});
      },
      ThrowsMessage<ResourceExhaustedError>(HasSubstr(kPs0 + " keeps 2 sessions, the most that it may")));
  EXPECT_THAT([&] { create_session(worker, {"a2", kPs0, {}}, {}); }, Throws<AlreadyExistsError>());
  delete_session(worker, "a1", {});
  create_session(worker, {"a3", kPs0, {}}, {});
}

TEST_F(LocalWorkers, KeepNothingForAMasterThatHasGivenUp) {
  LocalWorker& worker = cluster_[kPs0];
  std::stop_source given_up;
  given_up.request_stop();
  const Deadline deadline({}, given_up.get_token());
  EXPECT_THROW(create_session(worker, {"a1", kPs0, {}}, deadline), CancelledError);
  EXPECT_THAT(status_of(worker).sessions, Not(Contains("a1")));
  create_session(worker, {"a1", kPs0, {}});
  PartRequest part{.graph = {}, .feeds = {}, .fetches = {}, .targets = {"n"}};
  part.graph.nodes.resize(1);
  part.graph.nodes[0].name = "n";
  part.graph.nodes[0].op = "NoOp";
  part.graph.nodes[0].device = kPs0 + "/device:CPU:0";
  EXPECT_THROW(register_part(worker, "a1", part, deadline), CancelledError);
  const std::uint64_t next = register_part(worker, "a1", part);
  RunPartRequest request;
  request.session = "a1";
  request.part = next - 1;
  StepCancellation cancellation;
  EXPECT_THROW(worker.run_part_here(request, {}, cancellation), NotFoundError);
}

// It came to the passes, which ended the process: whoever may register a part could do that.
TEST_F(LocalWorkers, RefuseAPartThatDoesNothing) {
  create_session(cluster_[kPs0], {"a1", kPs0, {}});
  EXPECT_THAT([&] { register_part(cluster_[kPs0], "a1", {}); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("no feeds, fetches or targets")));
}

TEST_F(LocalWorkers, SayWhichSessionTheyDoNotKnow) {
  EXPECT_THAT(
      [&] { deregister_part(cluster_[kPs0], "ff", 1, {}); },
      ThrowsMessage<AbortedError>(HasSubstr("Session handle is not found: ff. Possibly this worker (\"" +
                                            kPs0 + "\") just restarted.")));
}

struct Collected final : TensorReceiver {
  Tensor memory_for(std::size_t, DType dtype, const Shape& shape) override { return Tensor(dtype, shape); }
  void arrived(std::size_t, Tensor, bool) override {}
  void ended(std::exception_ptr error) override { end.set_value(std::move(error)); }
  std::promise<std::exception_ptr> end;
};

std::string text_of(const std::exception_ptr& error) {
  try {
    if (error) std::rethrow_exception(error);
  } catch (const std::exception& e) {
    return e.what();
  }
  return "";
}

TEST_F(LocalWorkers, TellWhoAsksForAnotherLifeOfADevice) {
  SmallSession session(cluster_, graph_, kWorker0, "a");
  const auto receiver = std::make_shared<Collected>();
  auto ended = receiver->end.get_future();
  cluster_[kPs0].receive(
      {.session = "a",
       .step = 1,
       .receiver = kWorker0,
       .keys = {fmt::format("{}/device:CPU:0;{:016x};{}/device:CPU:0;x:0@0;0:0", kPs0, 1, kWorker0)}},
      receiver);
  EXPECT_THAT(text_of(ended.get()),
              AllOf(HasSubstr("RecvTensor expects a different device incarnation: 1 vs. "),
                    HasSubstr("Your worker job (\"" + kPs0 + "\") was probably restarted")));
}

TEST_F(LocalWorkers, TellWhoseGradientsAreMissing) {
  const Scope ps = s_.device(kPs0);
  const ConditionalAccumulator sum(ps.named("w/grad_accum"), DType::f32, {});
  const Output mean = take_grad(ps, sum, 2);
  const Operation push =
      apply_grad(ps, sum, constant(s_, 3.0f), constant(s_, Tensor::scalar<std::int64_t>(0)));
  SmallSession chief(cluster_, graph_, kWorker0, "chief"), other(cluster_, graph_, kWorker1, "other");
  auto taken = std::async(std::launch::async, [&] { return chief.run({mean}).at(0).value<float>(); });
  EXPECT_THAT(first_wait(kPs0).what, HasSubstr("\"w/grad_accum\" has 0 of 2 gradients"));
  other.run({push});
  EXPECT_EQ(first_wait(kPs0).what, "\"w/grad_accum\" has 1 of 2 gradients (missing from /job:worker/task:0)");
  EXPECT_THAT(first_wait(kWorker0).what, HasSubstr("AccumulatorTakeGradient:0@0"));
  other.run({push});
  EXPECT_EQ(taken.get(), 3.0f);
}

TEST_F(LocalWorkers, CancelWhoWaitsInAContainerThatIsDropped) {
  const Scope ps = s_.device(kPs0);
  const FIFOQueue queue(ps.named("jobs"), {DType::f32}, {.shapes = {Shape()}});
  const Output next = dequeue(ps, queue)[0];
  SmallSession session(cluster_, graph_, kWorker0, "a");
  auto taken = std::async(std::launch::async, [&] { session.run({next}); });
  EXPECT_THAT(first_wait(kPs0).what, HasSubstr("queue \"jobs\""));
  cleanup_containers(cluster_[kPs0], {}, {});
  EXPECT_THAT([&] { taken.get(); },
              ThrowsMessage<CancelledError>(HasSubstr("Dequeue operation was cancelled")));
}

TEST_F(LocalWorkers, EndStepsAndWatchesWhenTheyShutDown) {
  const FIFOQueue queue(s_.device(kPs0).named("jobs"), {DType::f32}, {.shapes = {Shape()}});
  const Output next = dequeue(s_.device(kPs0), queue)[0];
  SmallSession session(cluster_, graph_, kWorker0, "a");
  std::promise<std::exception_ptr> ended;
  std::atomic<int> told = 0;
  const auto watch = cluster_[kPs0].watch([&](const TaskStatus* status, std::exception_ptr error) {
    if (status != nullptr) ++told;
    else ended.set_value(std::move(error));
  });
  EXPECT_EQ(told, 1);
  auto taken = std::async(std::launch::async, [&] { session.run({next}); });
  first_wait(kPs0);
  cluster_[kPs0].shutdown();
  EXPECT_THAT([&] { taken.get(); }, ThrowsMessage<UnavailableError>(HasSubstr(kPs0 + " is shutting down")));
  EXPECT_THAT(text_of(ended.get_future().get()), HasSubstr("is shutting down"));
}

TEST_F(LocalWorkers, GetAndSetVariablesByName) {
  const Variable v(s_.device(kPs0).named("v"), constant(s_, 1.0f));
  SmallSession session(cluster_, graph_, kWorker0, "a");
  LocalWorker& ps = cluster_[kPs0];
  const std::vector<VariableKey> keys = {{"", "v"}, {"localhost", "none"}};
  EXPECT_THAT(are_initialized(ps, "a", keys, {}), ElementsAre(false, false));
  ps.set_variables("a", {keys[0]}, [](std::size_t) { return Tensor::scalar(9.0f); }, {});
  EXPECT_THAT(are_initialized(ps, "a", keys, {}), ElementsAre(true, false));
  EXPECT_EQ(session.run({v}).at(0).value<float>(), 9.0f);
  std::vector<Tensor> values;
  ps.get_variables("a", keys, [&](std::size_t, Tensor value) { values.push_back(std::move(value)); }, {});
  EXPECT_EQ(values.at(0).value<float>(), 9.0f);
  EXPECT_FALSE(values.at(1));
  EXPECT_EQ(status_of(ps).variable_bytes, 4);
}

TEST_F(LocalWorkers, CountRandomOpsPerSession) {
  graph_.set_seed(5);
  const Output x = random_uniform(s_.device(kPs0), DType::f32, {});
  SmallSession a(cluster_, graph_, kWorker0, "a"), b(cluster_, graph_, kWorker0, "b");
  const float first = a.run({x}).at(0).value<float>();
  EXPECT_NE(a.run({x}).at(0).value<float>(), first);
  EXPECT_EQ(b.run({x}).at(0).value<float>(), first);
}

TEST_F(LocalWorkers, WriteNoShardWhereTheyDoNotFindTheToken) {
  SmallCluster cluster({kPs0});
  LocalWorker& worker = cluster[kPs0];
  create_session(worker, {"ab", kPs0, {}}, {});
  const TemporaryDirectory folder;
  const std::string digits = "0123456789abcdef";
  const ShardPlace place{
      .prefix = folder / "model.ckpt-1", .token = digits + digits, .shard = 0, .shards = 1};
  const auto refused = [&] { write_shard(worker, "ab", place, {}, {}, {}); };
  const auto elsewhere = ThrowsMessage<FailedPreconditionError>(
      HasSubstr("checkpoint_dir " + folder.path() + " is not the same folder on /job:ps/replica:0/task:0"));
  EXPECT_THAT(refused, elsewhere);
  write_bytes(folder / "model.ckpt-1.safetensors.01234567.tmp", "another one's");
  EXPECT_THAT(refused, elsewhere);
  write_bytes(folder / "model.ckpt-1.safetensors.01234567.tmp", place.token);
  refused();

  ShardPlace strange = place;
  strange.prefix = "model.ckpt-1";
  EXPECT_THROW(write_shard(worker, "ab", strange, {}, {}, {}), InvalidArgumentError);
  strange = place, strange.token = "../../../../../../../../../../../..";
  EXPECT_THROW(write_shard(worker, "ab", strange, {}, {}, {}), InvalidArgumentError);
  strange = place, strange.shard = 1;
  EXPECT_THROW(write_shard(worker, "ab", strange, {}, {}, {}), InvalidArgumentError);
}

}  // namespace
}  // namespace kolo::detail
