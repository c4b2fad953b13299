// oneDNN as kolo's kernels use it: primitives made once, run with the step's pointers, all memory kolo's own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <dnnl.hpp>

#include <kolo/core/kernels/kernel.h>

namespace kolo::detail {

/// The one CPU engine of the process.
const dnnl::engine& onednn_engine();

/// Throws the kolo::Error that belongs to a failure of oneDNN: ResourceExhaustedError, UnimplementedError,
/// else InternalError.
[[noreturn]] void throw_onednn_error(const dnnl::error& error);

/// A dense row-major tensor; of any rank up to 12, none of its dimensions 0. f32, bf16, i32, u8.
dnnl::memory::desc row_major(DType dtype, const Shape& shape);
/// Images in blocked order (core/ops/blocked.h) of 8 or 16 channels or all; row-major where `block` is 0.
dnnl::memory::desc images_in_order(DType dtype, const Shape& shape, std::int64_t block);
/// A matrix [rows, cols] in row-major memory, seen as it is or, `transposed`, as [cols, rows].
dnnl::memory::desc matrix(std::int64_t rows, std::int64_t cols, bool transposed);
/// This shape in the layout that the primitive likes best.
dnnl::memory::desc any_layout(const Shape& shape,
                              dnnl::memory::data_type type = dnnl::memory::data_type::f32);
/// The same layout of elements of bf16.
dnnl::memory::desc in_bf16(dnnl::memory::desc layout);

/// For every primitive descriptor: scratch memory comes from the step's arena.
dnnl::primitive_attr own_scratch();

/// Moves `description` on to its first implementation that is not oneDNN's reference, which is hundreds of
/// times slower than a plain loop should be; false if there is none. What it was made of (the pass, a forward
/// description) must still be there: oneDNN reads it again.
template <typename Description>
bool skip_reference(Description& description) {
  while (std::string_view(description.impl_info_str()).find("ref") != std::string_view::npos)
    if (!description.next_impl()) return false;
  return true;
}
/// A description of `pass` that is not oneDNN's reference; empty if there is none. hint: of a backward pass
/// the forward description.
template <typename Description, typename Pass, typename... Hint>
Description fast_description(const Pass& pass, const Hint&... hint) {
  Description chosen(pass, own_scratch(), onednn_engine(), hint..., true);
  return chosen && skip_reference(chosen) ? chosen : Description();
}

/// A primitive's argument: `outside` is how the step's tensor lies in memory, `inside` how the primitive
/// wants it, of another type perhaps.
struct OneDnnArgument {
  int arg;  // DNNL_ARG_…
  dnnl::memory::desc outside;
  dnnl::memory::desc inside;
};

/// A primitive with all that a call needs. Arguments whose two layouts differ are reordered into or out of
/// scratch memory. run: one thread at a time, with as many OpenMP threads as the primitive was made for.
class OneDnnCall {
 public:
  /// scratchpad: the primitive descriptor's scratchpad_desc().
  OneDnnCall(dnnl::primitive primitive, const dnnl::memory::desc& scratchpad,
             const std::vector<OneDnnArgument>& inputs, const std::vector<OneDnnArgument>& outputs);

  std::size_t scratch_bytes() const { return scratch_bytes_; }
  /// Pointers of the inputs, in the constructor's order, and then of the outputs.
  void run(std::span<std::byte* const> tensors, std::byte* scratch);
  void run(std::initializer_list<std::byte*> tensors, std::byte* scratch) {
    run(std::span(tensors.begin(), tensors.size()), scratch);
  }

 private:
  struct Step {
    dnnl::primitive primitive;
    std::vector<dnnl_exec_arg_t> args;
  };
  struct ScratchMemory {
    dnnl::memory memory;
    std::size_t offset;
  };
  dnnl::memory in_scratch(const dnnl::memory::desc& desc);
  Step reorder(const dnnl::memory& from, const dnnl::memory& to);

  dnnl::stream stream_;
  std::vector<dnnl::memory> tensors_;
  std::vector<ScratchMemory> scratch_;
  std::vector<Step> steps_;
  std::vector<dnnl::memory> scratchpads_;  // of the steps: they share the end of the scratch memory
  std::size_t scratchpad_offset_ = 0;
  std::size_t scratch_bytes_ = 0;
  int threads_;
};

/// The kernel that is one call of oneDNN: its tensors are the context's inputs `inputs` and outputs, in
/// order.
class OneDnnKernel final : public Kernel {
 public:
  OneDnnKernel(OneDnnCall call, std::vector<int> inputs)
      : call_(std::move(call)), inputs_(std::move(inputs)) {}
  void compute(KernelContext& context) override;

 private:
  OneDnnCall call_;
  std::vector<int> inputs_;
  std::vector<std::byte*> tensors_;
};

/// Makes a kernel, by `wrap(OneDnnCall)`, from `plan(init)`, a std::optional<OneDnnCall> that is empty where
/// oneDNN has nothing but its reference. Declines then, for tensors without elements, and for what oneDNN
/// says it does not implement.
template <typename Plan, typename Wrap>
std::unique_ptr<Kernel> make_kernel_around(KernelInit& init, const Plan& plan, const Wrap& wrap);
/// The same where the kernel is an OneDnnKernel of these inputs.
template <typename Plan>
std::unique_ptr<Kernel> make_onednn_kernel(KernelInit& init, std::vector<int> inputs, const Plan& plan) {
  return make_kernel_around(init, plan, [&](OneDnnCall call) {
    return std::make_unique<OneDnnKernel>(std::move(call), std::move(inputs));
  });
}

/// Sets the calling thread's OpenMP team to `threads` while it lives.
class OmpThreads {
 public:
  explicit OmpThreads(int threads);
  OmpThreads(const OmpThreads&) = delete;
  OmpThreads& operator=(const OmpThreads&) = delete;
  ~OmpThreads();

 private:
  int before_;
  int threads_;
};

/// True if all shapes are known and no tensor is without elements.
bool has_elements(const KernelInit& init);

template <typename Plan, typename Wrap>
std::unique_ptr<Kernel> make_kernel_around(KernelInit& init, const Plan& plan, const Wrap& wrap) {
  if (!has_elements(init))
    return init.decline("oneDNN: a tensor has no elements, or a shape that is not known before the step");
  const OmpThreads threads(init.threads());
  try {
    auto call = plan(init);
    if (!call) return init.decline("oneDNN has only its reference implementation");
    init.request_scratch(call->scratch_bytes());
    return wrap(std::move(*call));
  } catch (const dnnl::error& error) {
    if (error.status == dnnl_unimplemented) return init.decline("oneDNN does not implement it");
    throw_onednn_error(error);
  }
}

}  // namespace kolo::detail
