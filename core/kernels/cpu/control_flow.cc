#include <algorithm>
#include <cstddef>

#include <kolo/core/base/error.h>
#include <kolo/core/kernels/kernel.h>

namespace kolo {
namespace {

class GuardKernel final : public Kernel {
 public:
  explicit GuardKernel(bool taken) : taken_(taken) {}
  void compute(KernelContext& context) override {
    context.skipped = context.input(0).value<bool>() != taken_;
  }

 private:
  bool taken_;
};

// The output may lie in the memory of an input, and may have no memory yet where its shape is not known.
class PassOnKernel : public Kernel {
 public:
  explicit PassOnKernel(KernelInit& init) : planned_(init.output_shape(0).is_fully_known()) {}

 protected:
  void pass_on(KernelContext& context, const Tensor& value) const {
    if (!planned_) context.set_output(0, value.clone());
    else if (context.output(0).raw() != value.raw()) context.output(0).copy_from(value);
  }
  bool planned_;
};

class JoinKernel final : public PassOnKernel {
 public:
  using PassOnKernel::PassOnKernel;
  void compute(KernelContext& context) override {
    pass_on(context, context.input(context.happened[0] ? 0 : 1));
  }
};

class TakenOrZerosKernel final : public PassOnKernel {
 public:
  using PassOnKernel::PassOnKernel;
  void compute(KernelContext& context) override {
    if (context.happened[0]) return pass_on(context, context.input(0));
    const Tensor& like = context.input(1);
    if (!planned_) context.set_output(0, Tensor::zeros(like.dtype(), like.shape()));
    else std::fill_n(context.output(0).raw(), context.output(0).bytes(), std::byte{0});
  }
};

void check_exclusive(KernelContext& context) {
  int count = 0;
  for (int i = 0; i < context.num_inputs(); ++i) count += context.input(i).value<bool>();
  if (count > 1)
    throw InvalidArgumentError("exclusive cases: more than 1 conditions evaluated as True: {} of {}", count,
                               context.num_inputs());
}

const RegisterKernel guard("BranchGuard", "CPU", {}, [](KernelInit& init) {
  return std::make_unique<GuardKernel>(init.attr<bool>("taken"));
});
const RegisterKernel join("BranchJoin", "CPU", {},
                          [](KernelInit& init) { return std::make_unique<JoinKernel>(init); });
const RegisterKernel taken_or_zeros("TakenOrZeros", "CPU", {}, [](KernelInit& init) {
  return std::make_unique<TakenOrZerosKernel>(init);
});
const RegisterKernel exclusive("CheckExclusive", "CPU", {}, check_exclusive);

}  // namespace
}  // namespace kolo
