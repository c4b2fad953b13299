// Convolutions by cuDNN.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <kolo/core/base/env.h>
#include <kolo/core/base/error.h>
#include <kolo/core/base/log.h>
#include <kolo/core/device/device_allocator.h>
#include <kolo/core/kernels/cuda/cuda_kernel.h>
#include <kolo/core/kernels/cuda/cudnn_graph.h>
#include <kolo/core/kernels/cuda/dnn_check.h>
#include <kolo/core/kernels/cuda/launch_windows.h>
#include <kolo/core/kernels/cuda/windows.h>
#include <kolo/core/ops/bf16.h>
#include <kolo/core/ops/convolution.h>

namespace kolo::cuda {
namespace {

// A tenth of what the process may have of the GPU, if nobody says more: with TF32 an engine for 256 images
// wants 986 MiB.
std::int64_t most_workspace(const KernelInit& init) {
  constexpr std::int64_t kMost = 4096;
  const std::int64_t tenth = std::min(gpu_of(init).allocator.limit_bytes() / 10 >> 20, kMost);
  static const std::int64_t mib = env_int64("KOLO_WORKSPACE_MIB", -1, 0, 1 << 20);
  return (mib < 0 ? tenth : mib) << 20;
}

// Which of the node's values is what; the one that is made is output 0.
struct Roles {
  ConvolutionPass pass;
  int images;   // an input, or −1 for the output
  int results;  // likewise; input 1 are the weights, but where they are made
};
constexpr Roles kForward = {ConvolutionPass::results, 0, -1};
constexpr Roles kImagesGradient = {ConvolutionPass::images, -1, 2};
// Its input is like the results of the convolution that it turns around.
constexpr Roles kTranspose = {ConvolutionPass::images, -1, 0};
constexpr Roles kWeightsGradient = {ConvolutionPass::weights, 0, 2};

const Shape& images_of(const KernelInit& init, const Roles& roles) {
  return roles.images < 0 ? init.output_shape(0) : init.input_shape(roles.images);
}
const Shape& results_of(const KernelInit& init, const Roles& roles) {
  return roles.results < 0 ? init.output_shape(0) : init.input_shape(roles.results);
}

std::array<std::int64_t, 4> dims(const Shape& shape) {
  return {shape.dim(0), shape.dim(1), shape.dim(2), shape.dim(3)};
}

ConvolutionQuestion question_of(const KernelInit& init, const Roles& roles) {
  const Shape& images = images_of(init, roles);
  const Shape& results = results_of(init, roles);
  const Shape& weights = init.input_shape(1);
  const RowsCols strides = rows_cols(init.attr<std::vector<std::int64_t>>("strides"), "strides");
  const auto axes = window_axes(images, {weights.dim(2), weights.dim(3)}, strides,
                                padding_from_name(init.attr<std::string>("padding")));
  ConvolutionQuestion question{.pass = roles.pass,
                               .images = dims(images),
                               .weights = dims(weights),
                               .results = dims(results),
                               .strides = strides,
                               .pad_before = {},
                               .pad_after = {},
                               .allow_tf32 = allows_tf32(init)};
  for (std::size_t side = 0; side < 2; ++side) {
    const WindowAxis& axis = axes[side];
    question.pad_before[side] = axis.pad_before;
    // Strides that jump over the image's end would need it negative; without it there are as many results.
    question.pad_after[side] = std::max<std::int64_t>(
        0, (axis.outputs - 1) * axis.stride + axis.window - axis.size - axis.pad_before);
  }
  return question;
}

std::string text_of(const ConvolutionQuestion& question) {
  const char* const pass = question.pass == ConvolutionPass::results  ? "results"
                           : question.pass == ConvolutionPass::images ? "images' gradients"
                                                                      : "weights' gradients";
  return fmt::format("{}, images [{}], weights [{}], by [{}], padding [{}] and [{}]{}", pass,
                     fmt::join(question.images, ","), fmt::join(question.weights, ","),
                     fmt::join(question.strides, ","), fmt::join(question.pad_before, ","),
                     fmt::join(question.pad_after, ","), question.allow_tf32 ? ", TF32" : "");
}

// Whether engines serve for one convolution: each is measured once a process and GPU. The handle's mutex is
// held.
class Verdicts {
 public:
  Verdicts(const KernelInit& init, const Roles& roles, DnnHandle& dnn, const ConvolutionQuestion& question)
      : init_(init),
        roles_(roles),
        dnn_(dnn),
        name_(text_of(question)),
        known_(dnn.serves[name_]),
        times_(dnn.times[name_]) {}

  /// Throws where the GPU is lost.
  bool serves(std::size_t place, DnnPlan& plan) {
    const std::pair key(place, plan.engine());
    const auto found = known_.find(key);
    if (found != known_.end()) return found->second;
    const std::optional<bool> measured = measure(plan);
    if (measured) known_[key] = *measured;
    else is_complete_ = false;
    return measured.value_or(false);
  }

  const std::string& name() const { return name_; }
  /// Of the plan that was chosen, for the file; nothing where memory was too short to look at all of them.
  std::optional<EngineChoice> choice(const DnnPlan& plan) const {
    if (!is_complete_) return std::nullopt;
    EngineChoice made{.engine = plan.engine(), .place = static_cast<std::int64_t>(plan.place())};
    const auto timed = times_.find(plan.place());
    made.by_time = chooses_by_time() && timed != times_.end();
    if (made.by_time) made.milliseconds = timed->second;
    return made;
  }

  /// Milliseconds, measured once: all plans of a process take the same engine. Throws where the GPU is lost.
  double time(std::size_t place, DnnPlan& plan) {
    const auto found = times_.find(place);
    if (found != times_.end()) return found->second;
    const UsesOtherStream guard{dnn_, static_cast<cudaStream_t>(gpu_of(init_).compute.native())};
    const auto run = [&](cudaStream_t stream, const DnnPlan::Operands& operands) {
      plan.run(dnn_, stream, operands);
    };
    double took = std::numeric_limits<double>::infinity();
    try {
      const MemoryOwner owner("measuring cuDNN's engines");
      if (!check_) make_check();
      took = check_->time_of(run, plan.workspace_bytes());
    } catch (const ResourceExhaustedError&) {  // the one that takes less is taken
      is_complete_ = false;
    }
    log_debug("{} ({}): cuDNN's engine {} takes {:.4f} ms", init_.node(), name_, plan.engine(), took);
    return times_[place] = took;
  }

 private:
  // A check's stream ends with it: the handle goes back to that of the kernels.
  struct UsesOtherStream {
    DnnHandle& dnn;
    cudaStream_t own;
    ~UsesOtherStream() {
      dnn.stream = dnn.api.set_stream(dnn.handle, own) == CUDNN_STATUS_SUCCESS ? own : nullptr;
    }
  };

  // Nothing where memory is too short to tell.
  std::optional<bool> measure(DnnPlan& plan) {
    PhysicalGpu& gpu = gpu_of(init_);
    const UsesOtherStream guard{dnn_, static_cast<cudaStream_t>(gpu.compute.native())};
    std::string fault, refusal;
    const auto run = [&](cudaStream_t stream, const DnnPlan::Operands& operands) {
      try {
        plan.run(dnn_, stream, operands);
      } catch (const InternalError& error) {
        refusal = error.what();
        throw;
      }
    };
    try {
      const MemoryOwner owner("measuring cuDNN's engines");
      if (!check_) make_check();
      fault = check_->fault_of(run, plan.workspace_bytes());
    } catch (const ResourceExhaustedError& error) {
      static std::atomic<bool> told = false;
      if (!told.exchange(true))
        log_warning(
            "{}: there is no memory to measure cuDNN's engines in, so that a slower one, or kolo's own "
            "kernel, may compute: {}",
            init_.node(), error.what());
      return std::nullopt;
    } catch (const InternalError&) {
      gpu.compute.check();
      if (refusal.empty()) throw;
      fault = fmt::format("does not run: {}", refusal);
    }
    log_debug("{} ({}): cuDNN's engine {} {}", init_.node(), name_, plan.engine(),
              fault.empty() ? "serves" : fault);
    return fault.empty();
  }

  void make_check() {
    PhysicalGpu& gpu = gpu_of(init_);
    check_.emplace(gpu.api, gpu.allocator, roles_.pass,
                   convolution_of(init_, images_of(init_, roles_), results_of(init_, roles_)),
                   allows_tf32(init_));
  }

  const KernelInit& init_;
  const Roles& roles_;
  DnnHandle& dnn_;
  const std::string name_;
  std::map<std::pair<std::size_t, std::int64_t>, bool>& known_;
  std::map<std::size_t, double>& times_;
  std::optional<ConvolutionCheck> check_;
  bool is_complete_ = true;
};

// By the file, as an earlier run has chosen; else measured, and written there.
std::optional<DnnPlan> choose(const KernelInit& init, DnnHandle& dnn, const ConvolutionQuestion& question,
                              Verdicts& verdicts, std::string& why) {
  EngineBook* const book = engine_book();
  std::optional<EngineChoice> kept;
  if (book != nullptr) kept = book->find(dnn.machine, verdicts.name());
  // The first that served is none of those that were timed.
  if (kept && chooses_by_time() && !kept->by_time) kept.reset();
  auto plan = DnnPlan::make(
      dnn.api, {.handle = dnn.handle}, question, most_workspace(init),
      [&](std::size_t place, DnnPlan& candidate) { return verdicts.serves(place, candidate); }, why,
      chooses_by_time()
          ? [&](std::size_t place, DnnPlan& candidate) { return verdicts.time(place, candidate); }
          : DnnPlan::Time(),
      kept);
  if (!plan || book == nullptr) return plan;
  const auto is_kept = [&] {
    return kept->engine == plan->engine() && kept->place == static_cast<std::int64_t>(plan->place());
  };
  if (kept && is_kept()) return plan;
  if (kept)
    log_info("{} ({}): engine {} of {} does not serve here any more; engine {} was chosen anew", init.node(),
             verdicts.name(), kept->engine, book->path(), plan->engine());
  if (const auto made = verdicts.choice(*plan)) book->note(dnn.machine, verdicts.name(), *made);
  return plan;
}

bool is_aligned(const Tensor& tensor) {
  return reinterpret_cast<std::uintptr_t>(tensor.raw()) % DnnPlan::kAlignment == 0;
}

class DnnConvolution final : public Kernel {
 public:
  DnnConvolution(KernelInit& init, const Roles& roles, DnnHandle& dnn, DnnPlan plan)
      : roles_(roles),
        dnn_(dnn),
        plan_(std::move(plan)),
        shape_(convolution_of(init, images_of(init, roles), results_of(init, roles))) {
    init.request_scratch(static_cast<std::size_t>(plan_.workspace_bytes()));
  }

  void compute(KernelContext& context) override {
    const Tensor& images = value(context, roles_.images);
    const Tensor& weights = value(context, roles_.pass == ConvolutionPass::weights ? -1 : 1);
    const Tensor& results = value(context, roles_.results);
    // Parts of tensors may lie anywhere: the direct kernel takes them.
    if (!is_aligned(images) || !is_aligned(weights) || !is_aligned(results))
      return convolve_directly(stream_of(context), roles_.pass, shape_, images.data<float>(),
                               weights.data<float>(), results.data<float>());
    const MutexLock lock(dnn_.mutex);
    plan_.run(dnn_, stream_of(context),
              {.images = images.raw(),
               .weights = weights.raw(),
               .results = results.raw(),
               .workspace = plan_.workspace_bytes() == 0 ? nullptr : context.scratch()});
  }

 private:
  static const Tensor& value(const KernelContext& context, int input) {
    return input < 0 ? context.output(0) : context.input(input);
  }

  Roles roles_;
  DnnHandle& dnn_;
  DnnPlan plan_;
  Convolution shape_;
};

// Once a process, of what nobody has asked for.
void tell_precision(const KernelInit& init) {
  if (!init.is_marked(kInTf32) || init.attr<bool>(kInTf32)) return;
  static std::atomic<bool> told = false;
  if (told.exchange(true)) return;
  if (allows_tf32(init))
    log_info("convolutions on GPU {} multiply in TF32 (precision f32 for exact ones)", gpu_of(init).gpu);
  else log_info("convolutions on GPU {} multiply in f32 (NVIDIA_TF32_OVERRIDE=0)", gpu_of(init).gpu);
}

template <const Roles& kRoles>
std::unique_ptr<Kernel> make_dnn_convolution(KernelInit& init) {
  bool known = init.output_shape(0).is_fully_known(), empty = known && init.output_shape(0).elements() == 0;
  for (int i = 0; i < init.num_inputs(); ++i) {
    known &= init.input_shape(i).is_fully_known();
    empty |= known && init.input_shape(i).elements() == 0;
  }
  if (!known) return init.decline("a shape depends on the values of the step");
  if (empty) return init.decline("there are no elements");
  std::string why;
  DnnHandle* const dnn = gpu_of(init).libraries.dnn(why);
  if (dnn == nullptr) return init.decline(why);
  const MutexLock lock(dnn->mutex);
  const ConvolutionQuestion question = question_of(init, kRoles);
  Verdicts verdicts(init, kRoles, *dnn, question);
  auto plan = choose(init, *dnn, question, verdicts, why);
  if (!plan) return init.decline(why);
  tell_precision(init);
  return std::make_unique<DnnConvolution>(init, kRoles, *dnn, std::move(*plan));
}

const RegisterGpuKernel dnn_kernels[] = {
    {"Conv2D", {DType::f32}, make_dnn_convolution<kForward>, 1},
    {"Conv2DBackpropInput", {DType::f32}, make_dnn_convolution<kImagesGradient>, 1},
    {"Conv2DTranspose", {DType::f32}, make_dnn_convolution<kTranspose>, 1},
    {"Conv2DBackpropFilter", {DType::f32}, make_dnn_convolution<kWeightsGradient>, 1},
};

}  // namespace
}  // namespace kolo::cuda
