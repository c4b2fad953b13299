// The calls of a master over real gRPC.
#include <gmock/gmock.h>

#include "tests/core/cluster/rpc_fakes.h"

namespace kolo::detail {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

RunStepRequest step_request() {
  RunStepRequest request;
  request.session = "ab";
  return request;
}

TEST(RpcMaster, CreatesAndExtendsASession) {
  FakeTask task;
  const auto remote = task.remote_master();
  GraphDef graph;
  for (int i = 0; i < 5000; ++i)
    graph.nodes.push_back(node("some/long/scope/node_" + std::to_string(i), "NoOp"));
  SessionConfig config;
  config.log_device_placement = true;
  const auto created = create_session(*remote, graph, config, soon());
  EXPECT_EQ(created.handle(), "00112233445566778899aabbccddeeff");
  EXPECT_EQ(created.graph_version(), 7);
  EXPECT_EQ(task.master.created.first, graph);
  EXPECT_TRUE(task.master.created.second.log_device_placement);
  EXPECT_THAT(task.master.caller, HasSubstr("client at ipv4:127.0.0.1:"));
  EXPECT_EQ(extend_session(*remote, "ab", 7, graph, soon()), 8);
}

TEST(RpcMaster, RunsAStepWithFeedsFetchesAndLines) {
  FakeTask task;
  task.master.on_run = [](const RunStepRequest& request, const std::stop_token&) {
    StepResult result;
    result.fetches = {request.feeds.at(1), Tensor(), request.feeds.at(0)};
    result.placement_lines = {"x: (NoOp): /job:ps"};
    return result;
  };
  auto request = step_request();
  request.names = {.feeds = {"a:0", "b:0"}, .fetches = {"c:0", "d:0", "e:0"}, .targets = {"t"}};
  request.feeds = {Tensor::of<std::string>({1}, {"hi"}), Tensor::zeros(DType::i64, {50'000})};
  request.request_id = 3;
  const auto remote = task.remote_master();
  const StepResult result = remote->run_step(request, soon());
  ASSERT_EQ(result.fetches.size(), 3u);
  EXPECT_EQ(result.fetches[0].shape(), Shape{50'000});
  EXPECT_FALSE(result.fetches[1]);
  EXPECT_EQ(result.fetches[2].value<std::string>(), "hi");
  EXPECT_THAT(result.placement_lines, ElementsAre("x: (NoOp): /job:ps"));
  EXPECT_THAT(task.master.ran.names.targets, ElementsAre("t"));
  EXPECT_THAT([&] { remote->run_step(request, soon()); },
              ThrowsMessage<AbortedError>(HasSubstr("Duplicate request")));
}

TEST(RpcMaster, RunsACallable) {
  FakeTask task;
  task.master.on_run = [](const RunStepRequest&, const std::stop_token&) {
    StepResult result;
    result.fetches = {Tensor::scalar(2.5f)};
    return result;
  };
  const auto remote = task.remote_master();
  auto request = step_request();
  request.callable = make_callable(*remote, "ab", {.feeds = {}, .fetches = {"y:0"}, .targets = {}}, soon());
  EXPECT_THAT(task.master.bound.fetches, ElementsAre("y:0"));
  EXPECT_EQ(remote->run_step(request, soon()).fetches.at(0).value<float>(), 2.5f);
  EXPECT_EQ(task.master.ran.callable, 5);
  release_callable(*remote, "ab", 5, soon());
  EXPECT_EQ(task.master.released, 5);
}

TEST(RpcMaster, EndsAStepByAStopRequest) {
  FakeTask task;
  std::promise<void> runs;
  task.master.on_run = [&](const RunStepRequest&, const std::stop_token& stop) -> StepResult {
    std::promise<void> stopped;
    const std::stop_callback hook(stop, [&] { stopped.set_value(); });
    runs.set_value();
    stopped.get_future().wait();
    throw CancelledError("the step was cancelled");
  };
  std::stop_source stop;
  auto step = std::async(std::launch::async, [&, remote = task.remote_master()] {
    return remote->run_step(step_request(), Deadline(soon()).with(stop.get_token()));
  });
  runs.get_future().wait();
  stop.request_stop();
  EXPECT_THROW(step.get(), CancelledError);
}

TEST(RpcMaster, RunsManyBlockingStepsAtOnce) {
  constexpr int kSteps = 32;
  FakeTask task;
  std::mutex mutex;
  std::condition_variable all_there;
  int there = 0;
  task.master.on_run = [&](const RunStepRequest&, const std::stop_token&) {
    std::unique_lock lock(mutex);
    ++there;
    all_there.notify_all();
    if (!all_there.wait_for(lock, std::chrono::seconds(20), [&] { return there == kSteps; }))
      throw DeadlineExceededError("only {} steps ran at once", there);
    return StepResult();
  };
  const auto remote = task.remote_master();
  std::vector<std::future<StepResult>> steps;
  for (int i = 0; i < kSteps; ++i)
    steps.push_back(std::async(std::launch::async, [&] { return remote->run_step(step_request(), soon()); }));
  for (auto& step : steps) EXPECT_NO_THROW(step.get());
}

TEST(RpcMaster, ListsResetsReadsAndCloses) {
  FakeTask task;
  task.master.devices = {{.name = "/job:ps/replica:0/task:0/device:CPU:0", .type = "CPU", .incarnation = 4}};
  const auto remote = task.remote_master();
  EXPECT_EQ(list_devices(*remote, "ab", soon()), task.master.devices);
  reset(*remote, {"exp1"}, {}, soon());
  EXPECT_THAT(task.master.dropped, ElementsAre("exp1"));
  std::vector<float> values;
  remote->get_variables(
      "ab", {"v", "w"}, [&](std::size_t, const Tensor& v) { values.push_back(v.value<float>()); }, soon());
  EXPECT_THAT(values, ElementsAre(0.f, 1.f));
  EXPECT_THAT(are_initialized(*remote, "ab", std::vector<std::string>{"v"}, soon()), ElementsAre(true));
  EXPECT_THAT([&] { close_session(*remote, "ab", soon()); },
              ThrowsMessage<AbortedError>(HasSubstr("Session ab is not found. Possibly")));
}

TEST(RpcMaster, WritesAndReadsShardsAndSetsPositions) {
  FakeTask task;
  const auto remote = task.remote_master();
  const std::vector<SavedVariable> variables{{.name = "v", .saved_as = "v", .shape = {2}},
                                             {.name = "w", .saved_as = "w", .shape = {}}};
  const auto shards = write_shards(*remote, "ab", {.prefix = "/p", .token = "t"}, variables, soon());
  ASSERT_EQ(shards.size(), 2u);
  EXPECT_THAT(shards[0].variables, ElementsAre(1u));
  EXPECT_THAT(shards[1].sums, ElementsAre(17u));
  EXPECT_EQ(shards[1].file_bytes, 18u);
  EXPECT_EQ(task.master.saved.at(1).name, "w");
  EXPECT_THROW(write_shards(*remote, "ab", {.prefix = "/p", .token = "t"}, {variables[0]}, soon()),
               InvalidArgumentError)
      << "of a variable that was not asked for";
  read_shards(*remote, "ab", {variables[0]}, soon());
  EXPECT_EQ(task.master.saved.size(), 1u);
  set_random_positions(*remote, "ab", {{"x", 3}}, soon());
  EXPECT_EQ(random_positions(*remote, "ab", soon()).at("x"), 3u);
}

TEST(RpcMaster, HoldsAWatchUntilTheClientLeaves) {
  FakeTask task;
  std::promise<void> ended;
  const auto watch = task.remote_master()->watch("ab", [&](std::exception_ptr) { ended.set_value(); });
  EXPECT_EQ(task.master.watched.get_future().get(), "ab");
  watch->cancel();
  EXPECT_EQ(ended.get_future().wait_for(std::chrono::seconds(20)), std::future_status::ready);
  EXPECT_EQ(task.master.left.get_future().wait_for(std::chrono::seconds(20)), std::future_status::ready);
}

}  // namespace
}  // namespace kolo::detail
