#include <kolo/core/kernels/cpu/onednn/onednn.h>

#include <omp.h>

#include <algorithm>

#include <kolo/core/base/error.h>
#include <kolo/core/kernels/cpu/onednn/native_bf16.h>
#include <kolo/core/ops/blocked.h>

namespace kolo::detail {
namespace {

constexpr std::size_t kAlignment = 64;

std::size_t aligned(std::size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

dnnl::memory::dims dims_of(const Shape& shape) { return {shape.dims().begin(), shape.dims().end()}; }

dnnl::memory::data_type type_of(DType dtype) {
  switch (dtype) {
    case DType::f32: return dnnl::memory::data_type::f32;
    case DType::bf16: return dnnl::memory::data_type::bf16;
    case DType::u8: return dnnl::memory::data_type::u8;
    case DType::i32: return dnnl::memory::data_type::s32;
    default: throw InternalError("oneDNN kernels do not take {}", dtype);
  }
}

// Setting a handle costs a pass over the padding of a blocked layout, and addresses hardly ever change.
void set_handle(dnnl::memory& memory, std::byte* data) {
  if (memory.get_data_handle() != data) memory.set_data_handle(data);
}

}  // namespace

const dnnl::engine& onednn_engine() {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

void throw_onednn_error(const dnnl::error& error) {
  if (error.status == dnnl_out_of_memory)
    throw ResourceExhaustedError("oneDNN is out of memory: {}", error.what());
  if (error.status == dnnl_unimplemented)
    throw UnimplementedError("oneDNN does not implement it: {}", error.what());
  throw InternalError("oneDNN failed with status {}: {}", static_cast<int>(error.status), error.what());
}

dnnl::memory::desc row_major(DType dtype, const Shape& shape) {
  const dnnl::memory::dims dims = dims_of(shape);
  dnnl::memory::dims strides(dims.size(), 1);
  for (std::size_t i = dims.size(); i-- > 1;) strides[i - 1] = strides[i] * dims[i];
  return {dims, type_of(dtype), strides};
}

dnnl::memory::desc images_in_order(DType dtype, const Shape& shape, std::int64_t block) {
  if (block == 0) return row_major(dtype, shape);
  using Tag = dnnl::memory::format_tag;
  const Tag tag = block == kChannelsLast ? Tag::nhwc : block == 16 ? Tag::nChw16c : Tag::nChw8c;
  return {dims_of(shape), type_of(dtype), tag};
}

dnnl::memory::desc matrix(std::int64_t rows, std::int64_t cols, bool transposed) {
  const auto f32 = dnnl::memory::data_type::f32;
  return transposed ? dnnl::memory::desc({cols, rows}, f32, dnnl::memory::dims{1, cols})
                    : dnnl::memory::desc({rows, cols}, f32, dnnl::memory::dims{cols, 1});
}

dnnl::memory::desc any_layout(const Shape& shape, dnnl::memory::data_type type) {
  return {dims_of(shape), type, dnnl::memory::format_tag::any};
}

dnnl::memory::desc in_bf16(dnnl::memory::desc layout) {
  layout.data.data_type = dnnl_bf16;
  return layout;
}

bool has_native_bf16() {
  const dnnl::cpu_isa isa = dnnl::get_effective_cpu_isa();
  return isa == dnnl::cpu_isa::avx512_core_bf16 || isa == dnnl::cpu_isa::avx512_core_amx;
}

void check_native_bf16() {
  if (has_native_bf16()) return;
  throw FailedPreconditionError(
      "precision bf16 needs a CPU with instructions for it (AMX or AVX512_BF16); this one has none that "
      "oneDNN "
      "may use: leave the precision at f32");
}

dnnl::primitive_attr own_scratch() {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attr;
}

OneDnnCall::OneDnnCall(dnnl::primitive primitive, const dnnl::memory::desc& scratchpad,
                       const std::vector<OneDnnArgument>& inputs, const std::vector<OneDnnArgument>& outputs)
    : stream_(onednn_engine()), threads_(omp_get_max_threads()) {
  Step main{std::move(primitive), {}};
  std::vector<Step> after;
  for (const OneDnnArgument& in : inputs) {
    tensors_.emplace_back(in.outside, onednn_engine(), nullptr);
    dnnl::memory memory = tensors_.back();
    if (in.inside != in.outside) {
      memory = in_scratch(in.inside);
      steps_.push_back(reorder(tensors_.back(), memory));
    }
    main.args.push_back({in.arg, memory.get()});
  }
  for (const OneDnnArgument& out : outputs) {
    tensors_.emplace_back(out.outside, onednn_engine(), nullptr);
    dnnl::memory memory = tensors_.back();
    if (out.inside != out.outside) {
      memory = in_scratch(out.inside);
      after.push_back(reorder(memory, tensors_.back()));
    }
    main.args.push_back({out.arg, memory.get()});
  }
  scratchpads_.emplace_back(scratchpad, onednn_engine(), nullptr);
  main.args.push_back({DNNL_ARG_SCRATCHPAD, scratchpads_.back().get()});
  steps_.push_back(std::move(main));
  std::move(after.begin(), after.end(), std::back_inserter(steps_));

  scratchpad_offset_ = scratch_bytes_;
  std::size_t largest = 0;
  for (const dnnl::memory& memory : scratchpads_) largest = std::max(largest, memory.get_desc().get_size());
  scratch_bytes_ += aligned(largest);
}

dnnl::memory OneDnnCall::in_scratch(const dnnl::memory::desc& desc) {
  dnnl::memory memory(desc, onednn_engine(), nullptr);
  scratch_.push_back({memory, scratch_bytes_});
  scratch_bytes_ += aligned(desc.get_size());
  return memory;
}

OneDnnCall::Step OneDnnCall::reorder(const dnnl::memory& from, const dnnl::memory& to) {
  const dnnl::reorder::primitive_desc desc(onednn_engine(), from.get_desc(), onednn_engine(), to.get_desc(),
                                           own_scratch());
  scratchpads_.emplace_back(desc.scratchpad_desc(), onednn_engine(), nullptr);
  return {dnnl::reorder(desc),
          {{DNNL_ARG_FROM, from.get()},
           {DNNL_ARG_TO, to.get()},
           {DNNL_ARG_SCRATCHPAD, scratchpads_.back().get()}}};
}

void OneDnnCall::run(std::span<std::byte* const> tensors, std::byte* scratch) {
  // The scratchpad was sized for this many threads; a larger team would write beyond it.
  const OmpThreads threads(threads_);
  try {
    for (std::size_t i = 0; i < tensors_.size(); ++i) set_handle(tensors_[i], tensors[i]);
    for (ScratchMemory& piece : scratch_) set_handle(piece.memory, scratch + piece.offset);
    for (dnnl::memory& memory : scratchpads_) set_handle(memory, scratch + scratchpad_offset_);
    for (const Step& step : steps_)
      // The C call: the C++ one copies its argument map to the heap each time.
      dnnl::error::wrap_c_api(dnnl_primitive_execute(step.primitive.get(), stream_.get(),
                                                     static_cast<int>(step.args.size()), step.args.data()),
                              "a primitive could not be executed");
  } catch (const dnnl::error& error) {
    throw_onednn_error(error);
  }
}

void OneDnnKernel::compute(KernelContext& context) {
  tensors_.clear();
  for (const int i : inputs_) tensors_.push_back(context.input(i).raw());
  for (int i = 0; i < context.num_outputs(); ++i) tensors_.push_back(context.output(i).raw());
  call_.run(tensors_, context.scratch());
}

OmpThreads::OmpThreads(int threads) : before_(omp_get_max_threads()), threads_(threads) {
  if (threads_ != before_) omp_set_num_threads(threads_);
}

OmpThreads::~OmpThreads() {
  if (threads_ != before_) omp_set_num_threads(before_);
}

bool has_elements(const KernelInit& init) {
  const auto some = [](const Shape& shape) { return shape.is_fully_known() && shape.elements() > 0; };
  for (int i = 0; i < init.num_inputs(); ++i)
    if (!some(init.input_shape(i))) return false;
  for (int i = 0; i < init.num_outputs(); ++i)
    if (!some(init.output_shape(i))) return false;
  return true;
}

}  // namespace kolo::detail
