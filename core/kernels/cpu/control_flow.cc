#include <kolo/core/base/error.h>
#include <kolo/core/kernels/passed_outputs.h>

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

class JoinKernel final : public Kernel {
 public:
  explicit JoinKernel(const KernelInit& init) : outputs_(init) {}
  void compute(KernelContext& context) override {
    outputs_.pass_on(context, 0, context.input(context.happened[0] ? 0 : 1));
  }

 private:
  PassedOutputs outputs_;
};

class TakenOrZerosKernel final : public Kernel {
 public:
  explicit TakenOrZerosKernel(const KernelInit& init) : outputs_(init) {}
  void compute(KernelContext& context) override {
    if (context.happened[0]) outputs_.pass_on(context, 0, context.input(0));
    else outputs_.fill_with_zeros(context, 0, context.input(1));
  }

 private:
  PassedOutputs outputs_;
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
