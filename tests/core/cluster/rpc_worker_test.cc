// The calls of a worker over real gRPC.
#include <gmock/gmock.h>

#include <atomic>
#include <numeric>

#include "tests/core/cluster/rpc_fakes.h"

namespace kolo::detail {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

GraphDef two_nodes() {
  GraphDef graph;
  graph.nodes = {node("a", "Placeholder"), node("b", "Identity", {"a"})};
  graph.nodes[0].device = "/job:ps/task:0";
  graph.seed = 9;
  return graph;
}

TEST(RpcWorker, TellsItsStatus) {
  FakeTask task;
  task.worker.answer_status = {.task = "/job:ps/replica:0/task:0",
                               .version = "1.2",
                               .cluster_fingerprint = 0xffffffffffffffff,
                               .devices = {{.name = "/job:ps/replica:0/task:0/device:CPU:0",
                                            .type = "CPU",

                                            .incarnation = 0x8000000000000001}},
                               .variable_bytes = 77,
                               .sessions = {"aa"},
                               .waits = {{.session = "aa",
                                          .step = 3,
                                          .node = "n",
                                          .op = "QueueDequeue",
                                          .what = "queue q",
                                          .nodes_left = 2}}};
  const TaskStatus status = status_of(*task.remote_worker(), soon());
  EXPECT_EQ(status.devices, task.worker.answer_status.devices);
  EXPECT_EQ(status.cluster_fingerprint, 0xffffffffffffffff);
  EXPECT_EQ(status.variable_bytes, 77);
  EXPECT_THAT(status.sessions, ElementsAre("aa"));
  ASSERT_EQ(status.waits.size(), 1u);
  EXPECT_EQ(status.waits[0].what, "queue q");
  EXPECT_EQ(status.waits[0].nodes_left, 2);
}

TEST(RpcWorker, CarriesASessionsConfigWhole) {
  FakeTask task;
  SessionConfig config{.intra_op_parallelism_threads = 3, .inter_op_parallelism_threads = -1};
  config.session_inter_op_thread_pool = {{.num_threads = 2, .global_name = "g"}};
  config.gpu_options.per_process_gpu_memory_fraction = 0.25;
  config.device_count = {{"CPU", 3}};
  config.virtual_gpus = {{.total_bytes = 5, .transfer_latency = std::chrono::microseconds(6)}};
  config.device_filters = {"/job:ps"};
  config.graph_options = {
      .optimizer_level = OptimizerLevel::l0, .disabled_passes = {"fold"}, .precision = Precision::bf16};
  config.cluster_def = {{"ps", {{7, "x:70"}}}, {"idle", {}}};
  config.isolate_session_state = true;
  create_session(*task.remote_worker(), session_request(config), soon());
  const SessionConfig& came = task.worker.created.config;
  EXPECT_EQ(task.worker.created.master, "/job:worker/replica:0/task:0");
  EXPECT_EQ(came.intra_op_parallelism_threads, 3);
  EXPECT_EQ(came.inter_op_parallelism_threads, -1);
  EXPECT_EQ(came.session_inter_op_thread_pool.at(0).global_name, "g");
  EXPECT_EQ(came.gpu_options.per_process_gpu_memory_fraction, 0.25);
  EXPECT_EQ(came.device_count, config.device_count);
  EXPECT_EQ(came.virtual_gpus.at(0).transfer_latency.count(), 6);
  EXPECT_EQ(came.device_filters, config.device_filters);
  EXPECT_EQ(came.graph_options.optimizer_level, OptimizerLevel::l0);
  EXPECT_EQ(came.graph_options.disabled_passes, config.graph_options.disabled_passes);
  EXPECT_EQ(came.graph_options.precision, Precision::bf16);
  EXPECT_EQ(came.cluster_def, config.cluster_def);
  EXPECT_TRUE(came.isolate_session_state);
}

TEST(RpcWorker, PassesTheRemainingTimeOn) {
  FakeTask task;
  const Deadline deadline = in(std::chrono::seconds(20));
  create_session(*task.remote_worker(), session_request(), deadline);
  ASSERT_TRUE(static_cast<bool>(task.worker.given_deadline));
  EXPECT_LT(std::chrono::abs(*task.worker.given_deadline - *deadline), std::chrono::seconds(2));
}

TEST(RpcWorker, RegistersAGraph) {
  FakeTask task;
  const PartRequest request{.graph = two_nodes(), .feeds = {"a:0"}, .fetches = {"b:0"}, .targets = {"b"}};
  EXPECT_EQ(register_part(*task.remote_worker(), "ab", request, soon()), 0xfedcba9876543210);
  EXPECT_EQ(task.worker.registered.graph, request.graph);
  EXPECT_THAT(task.worker.registered.fetches, ElementsAre("b:0"));
}

TEST(RpcWorker, SendsTheSmallCalls) {
  FakeTask task;
  const auto remote = task.remote_worker();
  delete_session(*remote, "ab", soon());
  deregister_part(*remote, "ab", 9, soon());
  cleanup_containers(*remote, {"c", "d"}, soon());
  EXPECT_EQ(task.worker.deleted, "ab");
  EXPECT_EQ(task.worker.deregistered.second, 9u);
  EXPECT_THAT(task.worker.dropped, ElementsAre("c", "d"));
}

TEST(RpcWorker, RunsAPartAndBringsItsMetadata) {
  FakeTask task;
  task.worker.on_run = [](const RunPartRequest&, FakeWorker::Done done) {
    PartResult result;
    const auto now = std::chrono::steady_clock::now();
    result.metadata.step_stats.events.push_back({.name = "n",
                                                 .category = "Op",
                                                 .lane = "CPU:0",
                                                 .start = now - std::chrono::milliseconds(5),
                                                 .end = now});
    result.metadata.memory.push_back({.device = "CPU:0", .planned_bytes = 12});
    done(nullptr, std::move(result));
    return std::shared_ptr<Call>();
  };
  auto request = part_request();
  request.trace_level = TraceLevel::full_trace;
  request.over = {1, 2};
  std::promise<PartResult> ended;
  const auto call =
      task.remote_worker()->run_part(request, soon(), [&](std::exception_ptr error, PartResult result) {
        if (error != nullptr) ended.set_exception(error);
        else ended.set_value(std::move(result));
      });
  const PartResult result = ended.get_future().get();
  EXPECT_EQ(task.worker.ran.step, 4);
  EXPECT_THAT(task.worker.ran.over, ElementsAre(1, 2));
  ASSERT_EQ(result.metadata.step_stats.events.size(), 1u);
  const auto& event = result.metadata.step_stats.events[0];
  EXPECT_EQ(event.end - event.start, std::chrono::milliseconds(5));
  EXPECT_EQ(result.metadata.memory.at(0).planned_bytes, 12u);
}

class RpcWorkerParts : public ::testing::TestWithParam<bool> {
 protected:
  static RunPartRequest request() {
    RunPartRequest request = part_request();
    request.only_ends = GetParam();
    return request;
  }
};
INSTANTIATE_TEST_SUITE_P(OnlyEnd, RpcWorkerParts, ::testing::Bool());

TEST_P(RpcWorkerParts, EndOrBringTheirError) {
  FakeTask task;
  task.worker.on_run = [](const RunPartRequest& request, FakeWorker::Done done) {
    done(request.step == 4 ? nullptr : std::make_exception_ptr(OutOfRangeError("the queue is closed")), {});
    return std::shared_ptr<Call>();
  };
  const auto run = [&, remote = task.remote_worker()](std::int64_t step) {
    RunPartRequest asked = request();
    asked.step = step;
    std::promise<void> ended;
    const auto call = remote->run_part(asked, soon(), [&](std::exception_ptr error, PartResult) {
      if (error != nullptr) ended.set_exception(error);
      else ended.set_value();
    });
    ended.get_future().get();
  };
  EXPECT_NO_THROW(run(4));
  EXPECT_THAT([&] { run(5); }, ThrowsMessage<OutOfRangeError>(HasSubstr("the queue is closed")));
}

TEST_P(RpcWorkerParts, EndAtTheirDeadline) {
  FakeTask task;
  std::promise<void> stopped;
  task.worker.on_run = [&](const RunPartRequest&, FakeWorker::Done done) {
    return std::make_shared<FakeCall>([&stopped, done = std::move(done)] {
      done(std::make_exception_ptr(CancelledError("ended")), {});
      stopped.set_value();
    });
  };
  std::promise<void> ended;
  const auto call = task.remote_worker()->run_part(
      request(), in(std::chrono::seconds(2)),  // so long that it has come to the task by then
      [&](std::exception_ptr error, PartResult) { ended.set_exception(error); });
  EXPECT_THROW(ended.get_future().get(), DeadlineExceededError);
  EXPECT_EQ(stopped.get_future().wait_for(std::chrono::seconds(20)), std::future_status::ready);
}

TEST_P(RpcWorkerParts, EndWhenTheyAreCancelled) {
  FakeTask task;
  std::promise<void> runs;
  task.worker.on_run = [&](const RunPartRequest&, FakeWorker::Done done) -> std::shared_ptr<Call> {
    auto call = std::make_shared<FakeCall>(
        [done = std::move(done)] { done(std::make_exception_ptr(CancelledError("ended")), {}); });
    runs.set_value();
    return call;
  };
  std::promise<void> ended;
  const auto call = task.remote_worker()->run_part(
      request(), soon(), [&](std::exception_ptr error, PartResult) { ended.set_exception(error); });
  runs.get_future().wait();
  call->cancel();
  EXPECT_THROW(ended.get_future().get(), CancelledError);
}

TEST(RpcWorker, BringsErrorsAsTheyAreWithTheirMark) {
  FakeTask task;
  const auto remote = task.remote_worker();
  task.worker.on_create = [] { throw AlreadyExistsError("there is\na session"); };
  EXPECT_THAT([&] { create_session(*remote, session_request(), soon()); },
              ThrowsMessage<AlreadyExistsError>(std::string("there is\na session")));
  task.worker.on_create = [] { throw ConsequenceError(Code::aborted, "Step 3 is over"); };
  EXPECT_THAT([&] { create_session(*remote, session_request(), soon()); },
              ThrowsMessage<ConsequenceError>(HasSubstr("Step 3 is over")));
  task.worker.on_create = [] { throw InvalidArgumentError("{}", std::string(100'000, 'x')); };
  EXPECT_THAT(
      [&] { create_session(*remote, session_request(), soon()); },
      ThrowsMessage<InvalidArgumentError>(AllOf(HasSubstr(std::string(3000, 'x')), HasSubstr("(cut)"))));
}

TEST(RpcWorker, EndsAtTheDeadline) {
  FakeTask task;
  std::promise<void> release;
  task.worker.on_create = [&] { release.get_future().wait(); };
  EXPECT_THROW(create_session(*task.remote_worker(), session_request(), in(std::chrono::milliseconds(50))),
               DeadlineExceededError);
  release.set_value();
}

TEST(RpcWorker, EndsWhenItsDeadlineIsStopped) {
  FakeTask task;
  std::promise<void> asked, dropped;
  task.worker.on_register = [&](const Deadline& deadline) {
    asked.set_value();
    const std::stop_callback on_stop(deadline.stop(), [&] { dropped.set_value(); });
    dropped.get_future().wait();
  };
  std::stop_source stop;
  auto registering = std::async(std::launch::async, [&] {
    return register_part(*task.remote_worker(), "ab",
                         {.graph = two_nodes(), .feeds = {}, .fetches = {}, .targets = {}},
                         Deadline(soon()).with(stop.get_token()));
  });
  asked.get_future().wait();
  stop.request_stop();
  EXPECT_THROW(registering.get(), CancelledError);
}

TEST(RpcWorker, RefusesAnotherTaskClusterAndToken) {
  FakeTask task;
  RemoteWorker other(make_channel(task.server.address(), task.caller()), "/job:ps/replica:0/task:1");
  EXPECT_THAT([&] { status_of(other, soon()); },
              ThrowsMessage<FailedPreconditionError>(
                  HasSubstr(task.server.address() + " is /job:ps/replica:0/task:0 of another cluster")));
  auto caller = task.caller();
  caller.cluster_fingerprint = 1;
  EXPECT_THAT([&] { status_of(*task.remote_worker(caller), soon()); },
              ThrowsMessage<FailedPreconditionError>(HasSubstr("of another cluster")));
}

TEST(RpcWorker, ReadsAndWritesVariablesOneByOne) {
  FakeTask task;
  const auto remote = task.remote_worker();
  Tensor large(DType::f32, {700'001});
  std::iota(large.span<float>().begin(), large.span<float>().end(), 0.f);
  const std::vector<VariableKey> keys{{"", "a"}, {"box", "b"}, {"", "c"}};
  task.worker.variables = {Tensor::of<std::string>({2}, {"x", std::string(200'000, 'y')}), Tensor(), large};
  std::vector<Tensor> came;
  remote->get_variables(
      "ab", keys, [&](std::size_t, Tensor value) { came.push_back(std::move(value)); }, soon());
  ASSERT_EQ(came.size(), 3u);
  EXPECT_EQ(came[0].span<std::string>()[1], std::string(200'000, 'y'));
  EXPECT_FALSE(came[1]);
  EXPECT_EQ(came[2].span<float>()[700'000], 700'000.f);
  EXPECT_EQ(task.worker.asked, keys);

  task.worker.variables.clear();
  remote->set_variables(
      "ab", keys, [&](std::size_t key) { return came.at(key == 1 ? 0 : key); }, soon());
  ASSERT_EQ(task.worker.set.size(), 3u);
  EXPECT_EQ(task.worker.set[2].span<float>()[699'999], 699'999.f);
  EXPECT_THAT(are_initialized(*remote, "ab", keys, soon()), ElementsAre(true, false, true));
}

TEST(RpcWorker, WritesAndReadsShards) {
  FakeTask task;
  const auto remote = task.remote_worker();
  const std::vector<VariableKey> keys{{"exp", "a"}, {"", "b"}};
  std::vector<SavedVariable> variables{{.name = "a", .saved_as = "a/part_0", .shape = {2, 3}},
                                       {.name = "b", .saved_as = "b", .shape = {}, .value = -4}};
  const ShardPlace place{.prefix = "/ck/model.ckpt-7", .token = "00ff", .shard = 1, .shards = 3};
  const WrittenShard written = write_shard(*remote, "ab", place, keys, variables, soon());
  EXPECT_THAT(written.sums, ElementsAre(0xfedcba98, 0xfedcba98));
  EXPECT_EQ(written.file_bytes, std::uint64_t{1} << 40);
  EXPECT_EQ(written.header_crc32c, 0x87654321u);
  EXPECT_EQ(task.worker.asked, keys);
  EXPECT_EQ(task.worker.saved_at.prefix, place.prefix);
  EXPECT_EQ(task.worker.saved_at.token, place.token);
  EXPECT_EQ(task.worker.saved_at.shard, 1);
  EXPECT_EQ(task.worker.saved_at.shards, 3);
  EXPECT_EQ(task.worker.saved.at(0).saved_as, "a/part_0");
  EXPECT_EQ(task.worker.saved.at(0).shape, (Shape{2, 3}));
  EXPECT_EQ(task.worker.saved.at(0).value, std::nullopt);
  EXPECT_EQ(task.worker.saved.at(1).value, -4);

  variables[1].file = "/ck/f";
  variables[1].crc32c = 0x99999999;
  read_shard(*remote, "ab", keys, variables, soon());
  EXPECT_EQ(task.worker.saved.at(1).file, "/ck/f");
  EXPECT_EQ(task.worker.saved.at(1).crc32c, 0x99999999u);
  variables[1].file = "/ck/\nf";
  EXPECT_THROW(read_shard(*remote, "ab", keys, variables, soon()), InvalidArgumentError);
}

TEST(RpcWorker, SetsAndTellsPositionsOfRandomOps) {
  FakeTask task;
  const std::map<std::string, std::uint64_t> positions{{"x", 0}, {"y", 0xffffffffffffffff}};
  set_random_positions(*task.remote_worker(), "ab", positions, soon());
  EXPECT_EQ(task.worker.positions, positions);
  EXPECT_EQ(random_positions(*task.remote_worker(), "ab", soon()), positions);
}

TEST(RpcWorker, ThrowsWhatAVariablesReaderThrows) {
  FakeTask task;
  task.worker.variables = {Tensor::scalar(1.f), Tensor::scalar(2.f)};
  const std::vector<VariableKey> keys{{"", "a"}, {"", "b"}};
  EXPECT_THROW(task.remote_worker()->get_variables(
                   "ab", keys, [](std::size_t, const Tensor&) { throw OutOfRangeError("enough"); }, soon()),
               OutOfRangeError);
}

// The second variable is on its way then, and nobody takes it.
TEST(RpcWorker, LetsGoOfTheVariablesThatAReaderHasLeft) {
  FakeTask task;
  task.worker.variables = {Tensor::scalar(1.f), Tensor(DType::f32, {16 << 20})};
  const std::vector<VariableKey> keys{{"", "a"}, {"", "b"}};
  EXPECT_THROW(task.remote_worker()->get_variables(
                   "ab", keys, [](std::size_t, const Tensor&) { throw OutOfRangeError("enough"); }, soon()),
               OutOfRangeError);
  auto stopped = std::async(std::launch::async, [&] { task.server.stop(std::chrono::milliseconds(0)); });
  EXPECT_EQ(stopped.wait_for(std::chrono::seconds(8)), std::future_status::ready);
}

TEST(RpcWorker, TellsWhoWatchesItAndWhoStops) {
  std::promise<void> connected, stopping;
  FakeTask task(FakeTask::at("localhost:0"), false);
  task.on_watcher = [&](const TaskProcess& who, WatcherEvent event) {
    EXPECT_EQ(who.task, "/job:worker/replica:0/task:0");
    EXPECT_EQ(who.incarnation, 0xfedcba9876543210);
    if (event == WatcherEvent::connected) connected.set_value();
    if (event == WatcherEvent::stopping) stopping.set_value();
    EXPECT_NE(event, WatcherEvent::lost);
  };
  task.start();
  task.worker.answer_status.variable_bytes = 6;
  std::promise<std::int64_t> stands;
  std::promise<void> ended;
  Caller caller = task.caller();
  caller.incarnation = 0xfedcba9876543210;
  const auto remote = task.remote_worker(caller);
  const auto watch = remote->watch([&](const TaskStatus* status, std::exception_ptr error) {
    if (status != nullptr) stands.set_value(status->variable_bytes);
    else ended.set_exception(error);
  });
  connected.get_future().wait();
  EXPECT_EQ(stands.get_future().get(), 6);
  remote->say_stopping();
  stopping.get_future().wait();
  EXPECT_THROW(ended.get_future().get(), UnavailableError);
}

TEST(RpcWorker, StoppingIsHeardAlthoughTheWatchIsCancelledBehindIt) {
  Mutex mutex;
  std::vector<WatcherEvent> heard;
  FakeTask task(FakeTask::at("localhost:0"), false);
  task.on_watcher = [&](const TaskProcess&, WatcherEvent event) {
    MutexLock lock(mutex);
    if (event != WatcherEvent::connected) heard.push_back(event);
  };
  task.start();
  const auto remote = task.remote_worker(task.caller());
  constexpr int kTimes = 200;
  for (int i = 0; i < kTimes; ++i) {
    std::promise<void> stands, ended;
    const auto watch = remote->watch([&](const TaskStatus* status, const std::exception_ptr&) {
      if (status != nullptr) stands.set_value();
      else ended.set_value();
    });
    stands.get_future().wait();
    remote->say_stopping();
    remote->wait_until_stopping_is_heard(std::chrono::steady_clock::now() + std::chrono::seconds(20));
    watch->cancel();
    ended.get_future().wait();
  }
  MutexLock lock(mutex);
  EXPECT_EQ(heard, std::vector<WatcherEvent>(kTimes, WatcherEvent::stopping));
}

}  // namespace
}  // namespace kolo::detail
