// Ops that make one number of whole tensors, and those that look for what is no number.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <kolo/core/base/error.h>
#include <kolo/core/kernels/cuda/cuda_kernel.h>
#include <kolo/core/kernels/cuda/launch_norm_ops.h>

namespace kolo::cuda {
namespace {

// Parts shorter than this cost more than they save, and so many keep today's GPUs busy.
constexpr std::int64_t kShortestNormPart = 1024, kMostParts = 4096;

class TotalKernel final : public Kernel {
 public:
  TotalKernel(KernelInit& init, Term term, Total total) : term_(term), total_(total) {
    for (int i = 0; i < init.num_inputs(); ++i) {
      const std::int64_t elements = init.input_shape(i).elements();
      parts_.push_back(std::clamp<std::int64_t>(elements / kShortestNormPart, 1, kMostParts));
      all_parts_ += parts_.back();
    }
    init.request_scratch(static_cast<std::size_t>(all_parts_) * sizeof(double));
  }

  void compute(KernelContext& context) override {
    const cudaStream_t stream = stream_of(context);
    auto* const partial = reinterpret_cast<double*>(context.scratch());
    std::int64_t first = 0;
    for (std::size_t i = 0; i < parts_.size(); first += parts_[i++]) {
      const Tensor& x = context.input(static_cast<int>(i));
      check_cuda(launch_terms(stream, {.term = term_,
                                       .type = element_type(x.dtype()),
                                       .x = x.raw(),
                                       .partial = partial + first,
                                       .elements = x.elements(),
                                       .parts = parts_[i]}),
                 "a sum over all elements");
    }
    check_cuda(
        launch_total(
            stream, {.total = total_, .partial = partial, .y = context.output(0).raw(), .parts = all_parts_}),
        "a sum over all elements");
  }

 private:
  Term term_;
  Total total_;
  std::vector<std::int64_t> parts_;  // of each input
  std::int64_t all_parts_ = 0;
};

// Other tensors than the first may be of other types.
std::unique_ptr<Kernel> make_all_finite(KernelInit& init) {
  for (int i = 1; i < init.num_inputs(); ++i)
    if (init.input_dtype(i) == DType::f64) return init.decline("an input is f64");
  return planned<TotalKernel>(Term::times_zero, Total::is_zero)(init);
}

class CheckNumericsKernel final : public Kernel, public DeferredCheck {
 public:
  explicit CheckNumericsKernel(KernelInit& init)
      : message_(init.attr<std::string>("message")), nan_(init), infinity_(init) {}
  void compute(KernelContext& context) override {
    check_cuda(launch_check_numerics(stream_of(context), {.x = context.input(0).data<float>(),
                                                          .y = context.output(0).data<float>(),
                                                          .elements = context.input(0).elements(),
                                                          .nan = nan_.get(),
                                                          .infinity = infinity_.get()}),
               "check_numerics");
  }
  void check() override {
    const bool nan = nan_.take().has_value(), infinite = infinity_.take().has_value();
    if (nan || infinite)
      throw InvalidArgumentError("{} : Tensor had {} values", message_,
                                 nan && infinite ? "Inf and NaN"
                                 : nan           ? "NaN"
                                                 : "Inf");
  }

 private:
  std::string message_;
  BadValueWord nan_;
  BadValueWord infinity_;
};

const RegisterGpuKernel norm_kernels[] = {
    {"GlobalNorm", {DType::f32}, planned<TotalKernel>(Term::square, Total::root)},
    {"L2Loss", {DType::f32}, planned<TotalKernel>(Term::square, Total::half)},
    {"AllFinite", {DType::f32, DType::f16, DType::bf16}, make_all_finite},
    {"CheckNumerics", {DType::f32}, planned<CheckNumericsKernel>()},
};

}  // namespace
}  // namespace kolo::cuda
