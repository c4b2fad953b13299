// The memory of a virtual GPU: out of the host's reach, and what kernels only read cannot be written.
#include <gmock/gmock.h>

#include <kolo/core/base/error.h>
#include <kolo/core/device/gpu_platform.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/variables.h>
#include <kolo/core/runtime/aliased_kernel.h>
#include <kolo/core/runtime/session.h>
#include <kolo/core/runtime/session_state.h>

namespace kolo {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

const RegisterOp scribble_op(OpSchema("TestScribble").input("x", {DType::f32}).output("y").stateful());
void write_to_the_input(KernelContext& context) {
  context.output(0).span<float>()[0] = 1;
  context.input(0).span<float>()[0] = 1;
}
const RegisterKernel scribble_kernel("TestScribble", "CPU", {}, write_to_the_input);

SessionConfig one_gpu() {
  SessionConfig config;
  config.virtual_gpus = {{.total_bytes = std::int64_t{1} << 30}};
  return config;
}

class ProtectedMemory : public ::testing::Test {
 protected:
  // The statement runs in a process of its own: this one has threads.
  ProtectedMemory() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(ProtectedMemory, EndsAHostThatReadsIt) {
  Graph graph;
  const Scope s = Scope(graph).device("/gpu:0");
  const Variable v(s.named("v"), constant(s, 1.0f));
  Session session(graph, one_gpu());
  session.run(v.initializer());
  const Tensor value = detail::storage_of(session, v).value;
  EXPECT_DEATH(static_cast<void>(*const_cast<volatile float*>(value.data<float>())), "");
}

TEST_F(ProtectedMemory, EndsAKernelThatWritesToWhatItReads) {
  Graph graph;
  const Scope s = Scope(graph).device("/gpu:0");
  const Output y = s.add("TestScribble", {identity(s, fill(s, DType::f32, {4}, 2))});
  Session session(graph, one_gpu());
  EXPECT_DEATH(session.run(y), "");
}

TEST_F(ProtectedMemory, IsWhatKernelsAreGivenAndNotTheHosts) {
  const auto platform = make_virtual_gpu_platform({{.total_bytes = std::int64_t{1} << 30}});
  const auto gpu = platform->make_device(0, local_device_name("GPU", 0), {});
  Graph graph;
  const Scope s(graph);
  const Output y = s.add("TestScribble", {constant(s, 1.0f)});
  StepNode node;
  node.schema = &y.node->schema();
  node.dtypes = {DType::f32};
  bool ran = false;
  class Runs final : public Kernel {
   public:
    explicit Runs(bool& ran) : ran_(ran) {}
    void compute(KernelContext& context) override {
      ran_ = true;
      context.output(0).span<float>()[0] = context.input(0).span<float>()[0];
    }

   private:
    bool& ran_;
  };
  const auto kernel = with_aliases(std::make_unique<Runs>(ran), node, *gpu);
  const Tensor host = Tensor::of<float>({1}, {1}), there(DType::f32, {1}, gpu->allocator());
  std::vector<Tensor> outputs = {Tensor(DType::f32, {1}, gpu->allocator())};
  std::vector<VariableStorage*> none = {nullptr};
  const Tensor* inputs[] = {&host};
  KernelContext context;
  context.inputs = inputs;
  context.outputs = outputs;
  context.variables = none;
  EXPECT_THAT([&] { kernel->compute(context); },
              ThrowsMessage<InternalError>(HasSubstr("not in the memory of GPU:0")));
  EXPECT_FALSE(ran);
  inputs[0] = &there;
  kernel->compute(context);
  EXPECT_TRUE(ran);
}

}  // namespace
}  // namespace kolo
