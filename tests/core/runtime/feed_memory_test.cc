// Values that lie on a GPU before the step that they are fed to: on virtual GPUs, whose streams fall behind
// now and then.
#include <gmock/gmock.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/runtime/feed_memory.h>
#include <kolo/core/runtime/session.h>

namespace kolo {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Not;

SessionConfig with_gpus(int gpus, std::int64_t bytes = std::int64_t{1} << 30) {
  SessionConfig config;
  config.virtual_gpus.assign(static_cast<std::size_t>(gpus), {.total_bytes = bytes, .delay_seed = 3});
  return config;
}

Tensor pair_of(float a, float b) { return Tensor::of<float>({2}, {a, b}); }

std::vector<float> values(const Tensor& tensor) {
  return {tensor.data<float>(), tensor.data<float>() + tensor.elements()};
}

class FedFromAGpu : public ::testing::Test {
 protected:
  Graph graph;
  const Scope s{graph};
  const Output x = placeholder(s, DType::f32, {-1});
  const Output twice = add(s.device("/gpu:0"), x, x), negative = neg(s.device("/cpu:0"), x);
  Session session{graph, with_gpus(1)};
};

TEST_F(FedFromAGpu, IsReadByItsGpuAndByTheHost) {
  FeedSender sender(session);
  const Tensor sent = sender.sent(pair_of(1, 2));
  const auto found = session.run(std::vector<Fetch>{twice, negative, x}, {{x, sent}});
  EXPECT_THAT(values(found[0]), ElementsAre(2, 4));
  EXPECT_THAT(values(found[1]), ElementsAre(-1, -2));
  EXPECT_THAT(values(found[2]), ElementsAre(1, 2));
}

TEST_F(FedFromAGpu, IsAnotherStepThanFedFromTheHost) {
  FeedSender sender(session);
  const Callable callable = session.make_callable({.feeds = {x}, .fetches = {twice}});
  for (int step = 0; step < 6; ++step) {
    const Tensor on_host = pair_of(static_cast<float>(step), 1);
    const Tensor fed = step % 2 == 0 ? on_host : sender.sent(on_host);
    EXPECT_THAT(values(session.run(twice, {{x, fed}})), ElementsAre(2 * step, 2));
    EXPECT_THAT(values(callable({{fed}})[0]), ElementsAre(2 * step, 2));
  }
}

// What the trace says of where copies go.
TEST_F(FedFromAGpu, TravelsNowhereInTheStep) {
  const auto lanes = [&](const Tensor& fed) {
    RunMetadata metadata;
    RunOptions options;
    options.trace_level = TraceLevel::full_trace;
    session.run(std::vector<Fetch>{twice}, {{x, fed}}, options, &metadata);
    std::set<std::string> found;
    for (const TraceEvent& event : metadata.step_stats.events) found.insert(event.lane);
    return found;
  };
  FeedSender sender(session);
  EXPECT_THAT(lanes(pair_of(1, 2)), Contains("CPU:0 to GPU:0"));
  EXPECT_THAT(lanes(sender.sent(pair_of(1, 2))), Not(Contains("CPU:0 to GPU:0")));
}

// Memory that a step reads, or that somebody holds, is another's no sooner than they are done.
TEST_F(FedFromAGpu, IsNotWrittenAnewWhileItIsInUse) {
  FeedSender sender(session);
  const Tensor held = sender.sent(pair_of(-1, -2));
  std::set<const std::byte*> memory;
  for (int step = 0; step < 60; ++step) {
    const auto number = static_cast<float>(step);
    const Tensor now = sender.sent(pair_of(number, 0)), next = sender.sent(pair_of(number, 1));
    memory.insert({now.raw(), next.raw()});
    EXPECT_THAT(values(session.run(twice, {{x, now}})), ElementsAre(2 * number, 0));
    EXPECT_THAT(values(session.run(twice, {{x, next}})), ElementsAre(2 * number, 2));
  }
  EXPECT_THAT(memory, Not(Contains(held.raw())));
  EXPECT_LE(memory.size(), 6u);
  EXPECT_THAT(values(session.run(twice, {{x, held}})), ElementsAre(-2, -4));
}

TEST_F(FedFromAGpu, HoldsTheHostsValueUntilItIsCopied) {
  FeedSender sender(session);
  for (int step = 0; step < 40; ++step) {
    Tensor value = pair_of(static_cast<float>(step), 1);
    const Tensor sent = sender.sent(value);
    if (value.buffer().use_count() == 1) std::fill_n(value.data<float>(), 2, -1.0F);  // as who reads the next
    value = Tensor();
    EXPECT_THAT(values(session.run(twice, {{x, sent}})), ElementsAre(2 * step, 2));
  }
}

TEST(FeedSender, LeavesValuesWhereNobodyKnowsWhoReadsThem) {
  for (const int gpus : {0, 2}) {
    Graph graph;
    Session session(graph, with_gpus(gpus));
    FeedSender sender(session);
    const Tensor value = pair_of(1, 2);
    EXPECT_EQ(sender.sent(value).raw(), value.raw());
    EXPECT_EQ(sender.is_needed(), false) << "a virtual GPU has no pinned memory";
  }
}

TEST(FeedSender, LeavesValuesOnTheHostWhereTheGpuHasNoRoom) {
  Graph graph;
  const Scope s(graph);
  const Output x = placeholder(s, DType::f32, {-1});
  const Output twice = add(s.device("/gpu:0"), x, x);
  Session session(graph, with_gpus(1, 256 << 20));
  FeedSender sender(session);
  const Tensor large = Tensor::zeros(DType::f32, {10 << 20});
  EXPECT_EQ(sender.sent(large).raw(), large.raw());
  EXPECT_THAT(values(session.run(twice, {{x, sender.sent(pair_of(1, 2))}})), ElementsAre(2, 4));
}

}  // namespace
}  // namespace kolo
