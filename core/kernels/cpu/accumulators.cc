#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/core/kernels/accumulator.h>
#include <kolo/core/kernels/cancellable.h>
#include <kolo/core/kernels/kernel.h>

namespace kolo {
namespace {

using detail::AccumulatorState;
using detail::Gradient;

using MakeSum = std::unique_ptr<detail::GradientSum> (*)(DType dtype, const Shape& shape);

ContainedFactory state_with(MakeSum make_sum) {
  return [make_sum](const Node& node, const std::string& name) {
    return std::make_shared<AccumulatorState>(name, node,
                                              make_sum(node.attr<DType>("dtype"), node.attr<Shape>("shape")));
  };
}
const RegisterContained dense_state("ConditionalAccumulator", state_with(detail::make_dense_sum));
const RegisterContained sparse_state("SparseConditionalAccumulator", state_with(detail::make_sparse_sum));

std::shared_ptr<AccumulatorState> accumulator_of(const KernelInit& init) {
  return std::dynamic_pointer_cast<AccumulatorState>(init.resource<Contained>());
}

Tensor as_i64(const Tensor& indices) {
  if (indices.dtype() == DType::i64) return indices;
  Tensor wide(DType::i64, indices.shape());
  for (std::int64_t i = 0; i < indices.elements(); ++i)
    wide.data<std::int64_t>()[i] = indices.data<std::int32_t>()[i];
  return wide;
}

// Of input `i`, which may be there.
std::optional<std::int64_t> generation_of(const KernelContext& context, int i) {
  if (context.num_inputs() <= i) return std::nullopt;
  return context.input(i).value<std::int64_t>();
}

// Inputs: the handle, the step, for rows their indices, and the values; then perhaps the generation.
template <bool kRows>
class ApplyGradient final : public Kernel {
 public:
  explicit ApplyGradient(const KernelInit& init)
      : accumulator_(accumulator_of(init)),
        sender_(detail::GradientSender::of(init.attr<std::string>("sender"))) {}

  void compute(KernelContext& context) override {
    constexpr int kValues = kRows ? 3 : 2;
    const Tensor& values = context.input(kValues);
    if (values.dtype() != accumulator_->dtype())
      throw InvalidArgumentError("Type mismatch: expected {}, got {}", tf_name(accumulator_->dtype()),
                                 tf_name(values.dtype()));
    accumulator_->apply({values, kRows ? as_i64(context.input(2)) : Tensor()},
                        context.input(1).value<std::int64_t>(), sender_, generation_of(context, kValues + 1));
  }

 private:
  const std::shared_ptr<AccumulatorState> accumulator_;
  const detail::GradientSender sender_;
};

class TakeGradient final : public AsyncKernel, public Cancellable, private detail::GradientTaker {
 public:
  explicit TakeGradient(const KernelInit& init)
      : accumulator_(accumulator_of(init)), required_(init.attr<std::int64_t>("num_required")) {
    // A graph from a file may promise another kind of mean, for which memory is planned then.
    if (init.attr<DType>("dtype") != accumulator_->dtype() ||
        init.attr<Shape>("shape") != accumulator_->shape())
      throw InvalidArgumentError("the op's type and shape are not its accumulator's");
  }

  void start(KernelContext& context, Completion done) override {
    context_ = &context;
    done_ = done;
    accumulator_->take(*this, required_);
  }
  void cancel() override { accumulator_->cancel(*this); }
  std::string waits_for(const std::vector<std::string>& workers) override {
    return accumulator_->waits_in(*this, workers);
  }

 private:
  void take(const Gradient& mean) override {
    if (!mean.indices) return context_->output(0).copy_from(mean.values);
    context_->set_output(0, mean.indices);
    context_->set_output(1, mean.values);
  }
  void finished(std::exception_ptr error) override {
    const Completion done = done_;
    done(std::move(error));
  }

  const std::shared_ptr<AccumulatorState> accumulator_;
  const std::int64_t required_;
  KernelContext* context_ = nullptr;
  Completion done_;
};

// What needs no waiting.
template <void (*kCall)(AccumulatorState&, const KernelContext&)>
class CallAccumulator final : public Kernel {
 public:
  explicit CallAccumulator(const KernelInit& init) : accumulator_(accumulator_of(init)) {}
  void compute(KernelContext& context) override { kCall(*accumulator_, context); }

 private:
  const std::shared_ptr<AccumulatorState> accumulator_;
};

void set_step(AccumulatorState& accumulator, const KernelContext& context) {
  accumulator.set_step(context.input(1).value<std::int64_t>());
}
void reset(AccumulatorState& accumulator, const KernelContext& context) {
  accumulator.reset(generation_of(context, 1));
}
void write_count(AccumulatorState& accumulator, const KernelContext& context) {
  *context.output(0).data<std::int32_t>() = static_cast<std::int32_t>(accumulator.num_accumulated());
}
void write_dropped(AccumulatorState& accumulator, const KernelContext& context) {
  std::int64_t sum = 0;
  for (const auto& [sender, dropped] : accumulator.num_dropped()) sum += dropped;
  *context.output(0).data<std::int64_t>() = sum;
}

const RegisterKernel apply("AccumulatorApplyGradient", "CPU", {}, make_kernel<ApplyGradient<false>>);
const RegisterKernel sparse_apply("SparseAccumulatorApplyGradient", "CPU", {},
                                  make_kernel<ApplyGradient<true>>);
const RegisterKernel take("AccumulatorTakeGradient", "CPU", {}, make_kernel<TakeGradient>);
const RegisterKernel sparse_take("SparseAccumulatorTakeGradient", "CPU", {}, make_kernel<TakeGradient>);
const RegisterKernel set_global_step("AccumulatorSetGlobalStep", "CPU", {},
                                     make_kernel<CallAccumulator<set_step>>);
const RegisterKernel reset_accumulator("AccumulatorReset", "CPU", {}, make_kernel<CallAccumulator<reset>>);
const RegisterKernel num_accumulated("AccumulatorNumAccumulated", "CPU", {},
                                     make_kernel<CallAccumulator<write_count>>);
const RegisterKernel num_dropped("AccumulatorNumDropped", "CPU", {},
                                 make_kernel<CallAccumulator<write_dropped>>);

}  // namespace
}  // namespace kolo
