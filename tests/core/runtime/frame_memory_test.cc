// What memory of the host a plan holds between its runs, and where it begins.
#include <gmock/gmock.h>
#include <unistd.h>

#include <fstream>

#include <kolo/core/base/error.h>
#include <kolo/core/graph/op_schema.h>
#include <kolo/core/kernels/kernel.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/reductions.h>
#include <kolo/core/runtime/session.h>

namespace kolo {
namespace {

std::int64_t resident_bytes() {
  std::int64_t pages = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> pages >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

TEST(FrameMemory, GoesBackToTheSystemAfterTheFirstRunAndStaysAfterTheSecond) {
#ifdef KOLO_THREAD_SANITIZER
  GTEST_SKIP() << "what the sanitizer notes of the memory stays resident";
#endif
  Graph graph;
  const Scope s(graph);
  constexpr std::int64_t kElements = std::int64_t{1} << 25;  // 128 MiB
  const Output x = s.add("Square", {fill(s, DType::f32, {kElements}, 3)});
  const Output largest = reduce_max(s, x);
  Session session(graph);
  const std::int64_t before = resident_bytes();
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(session.run(largest).value<float>(), 9);
    const std::int64_t kept = resident_bytes() - before;
    if (i == 0) EXPECT_LT(kept, kElements * 2);
    else EXPECT_GT(kept, kElements * 2);
  }
}

// y is x. The kernel's operands begin at multiples of its attribute.
const RegisterOp aligned_op(OpSchema("TestOfAlignedOperands")
                                .input("x")
                                .required_attr("alignment", 1)
                                .output("y")
                                .shape([](ShapeContext& c) { c.set_output(0, c.input(0)); }));

class AlignedKernel final : public Kernel {
 public:
  explicit AlignedKernel(KernelInit& init) {
    init.request_alignment(static_cast<std::size_t>(init.attr<std::int64_t>("alignment")));
  }
  void compute(KernelContext& context) override { context.output(0).copy_from(context.input(0)); }
};
const RegisterKernel aligned_kernel("TestOfAlignedOperands", "CPU", {}, make_kernel<AlignedKernel>);

TEST(FrameMemory, BeginsWhereKernelsHaveAskedOrThePlanSaysSo) {
  Graph graph;
  const Scope s(graph);
  const auto of = [&](Output x, std::int64_t alignment) {
    return Output(s.add("TestOfAlignedOperands", {x}, {{"alignment", alignment}}));
  };
  const Output x = placeholder(s, DType::f32, {3});
  const Feeds feeds = {{x, Tensor::of<float>({3}, {1, 2, 3})}};
  Session session(graph);
  EXPECT_EQ(session.run(of(of(x, 16), 64), feeds).data<float>()[2], 3);
  EXPECT_THAT([&] { session.run(of(x, std::int64_t{1} << 46), feeds); },
              ::testing::ThrowsMessage<InternalError>(::testing::HasSubstr("its kernel takes multiples of")));
}

}  // namespace
}  // namespace kolo
