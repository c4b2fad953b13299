// A GPU that no longer answers. KOLO_FAKE_CUDA_BREAK=hang: the third launch of a kept step is its last. A
// call that waits for it from then on ends the process, as it would hold it on a GPU.
#include <gtest/gtest.h>

#include <optional>

#include <kolo/core/base/error.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/ops/variables.h>
#include <kolo/core/runtime/session.h>

namespace kolo {
namespace {

TEST(HungGpu, DoesNotHoldTheEndOfTheSessionAndOfTheProcess) {
  Graph graph;
  const Scope s = Scope(graph).device("/gpu:0");
  const Variable v(s.named("v"), constant(s, Tensor::of<float>({2}, {1, 2})));
  Output y = v.read();
  for (int i = 0; i < 6; ++i) y = tanh(s, y);
  const Output update = assign_add(s, v, y);
  std::optional<Session> session(std::in_place, graph);
  session->run(v.initializer());
  EXPECT_THROW(
      {
        for (int i = 0; i < 10; ++i) session->run(std::vector<Fetch>{update}, {}, {.timeout_in_ms = 300});
      },
      DeadlineExceededError);
  session.reset();
}

}  // namespace
}  // namespace kolo
