// A machine that gives no pinned memory (KOLO_FAKE_CUDA_FAIL=cudaHostAlloc:2).
#include <gmock/gmock.h>

#include <string>

#include <kolo/core/base/error.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/losses.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/runtime/session.h>

namespace kolo {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(PinnedMemory, IsOrdinaryMemoryWhereTheSystemGivesNoneAndOneWarningSaysSo) {
  Graph graph;
  const Scope s = Scope(graph).device("/gpu:0");
  const Output x = placeholder(s, DType::f32, {2}), twice = add(s, x, x);
  Session session(graph);
  ::testing::internal::CaptureStderr();
  for (int step = 0; step < 5; ++step)
    EXPECT_EQ(session.run(twice, {{x, Tensor::of<float>({2}, {1, 2})}}).data<float>()[1], 4);
  const std::string log = ::testing::internal::GetCapturedStderr();
  const std::size_t first = log.find("use ordinary memory");
  EXPECT_NE(first, std::string::npos);
  EXPECT_EQ(log.find("use ordinary memory", first + 1), std::string::npos);
}

TEST(PinnedMemory, IsNoConditionForLargeFeeds) {
  Graph graph;
  const Scope s = Scope(graph).device("/gpu:0");
  constexpr std::int64_t kElements = 100'000;
  const Output x = placeholder(s, DType::f32, {kElements}), twice = add(s, x, x);
  Session session(graph);
  Tensor fed = Tensor::zeros(DType::f32, {kElements});
  for (int step = 0; step < 3; ++step) {
    fed.data<float>()[kElements - 1] = static_cast<float>(step);
    EXPECT_EQ(session.run(twice, {{x, fed}}).data<float>()[kElements - 1], 2 * static_cast<float>(step));
  }
}

TEST(PinnedMemory, IsNeededByKernelsThatCheckTheirValues) {
  Graph graph;
  const Scope s = Scope(graph).device("/gpu:0");
  const Output labels = placeholder(s, DType::i32, {1});
  const Output loss = softmax_cross_entropy(s, constant(s, Tensor::of<float>({1, 2}, {0.5F, 0.25F})), labels);
  Session session(graph);
  EXPECT_THAT(
      [&] {
        session.run(loss, {{labels, Tensor::of<std::int32_t>({1}, {1})}});
      },
      ThrowsMessage<ResourceExhaustedError>(HasSubstr("pinned memory for GPU 0 is out of memory")));
}

}  // namespace
}  // namespace kolo
