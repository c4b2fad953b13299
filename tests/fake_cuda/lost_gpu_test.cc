// A GPU that fails while a step waits for the host. KOLO_FAKE_CUDA_FAIL says by which call it is told.
#include <gmock/gmock.h>

#include <kolo/core/base/error.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/runtime/session.h>
#include <tests/core/counted_loop.h>
#include <tests/core/wait_op.h>

namespace kolo {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(LostGpu, EndsAStepThatWaitsForTheHost) {
  Graph graph;
  const Scope s(graph);
  const Scope host = s.device("/cpu:0");
  const Output x = placeholder(s, DType::f32, {2}), on_gpu = add(s.device("/gpu:0"), x, x);
  const Output endless = testing::wait_in(host);
  const Output loop = testing::counted_loop(
      host, 1000, [](const Scope& body) -> Operation { return testing::wait_in(body); });
  // The caller's thread alone, which is in the loop.
  Session session(graph, {.inter_op_parallelism_threads = -1});
  EXPECT_THAT(
      [&] {
        session.run({on_gpu, endless, loop}, {{x, Tensor::of<float>({2}, {1, 2})}});
      },
      ThrowsMessage<InternalError>(HasSubstr("cudaErrorIllegalAddress")));
  EXPECT_EQ(testing::waiting.cancelled, 2);
}

}  // namespace
}  // namespace kolo
