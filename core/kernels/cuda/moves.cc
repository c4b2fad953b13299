// Ops that bring elements to other places: parts of tensors, tensors joined, turned, repeated.
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <kolo/core/base/error.h>
#include <kolo/core/kernels/cpu/element_bits.h>
#include <kolo/core/kernels/cuda/cuda_kernel.h>
#include <kolo/core/kernels/cuda/launch_moves.h>
#include <kolo/core/ops/slicing_internal.h>

namespace kolo::cuda {
namespace {

using Index = detail::StridedIndex<2>;  // steps in y and in x
using Dims = std::vector<std::int64_t>;

// Elements inside each dimension.
Dims strides_of(const Shape& shape) {
  Dims strides(shape.dims().size());
  std::int64_t inside = 1;
  for (std::size_t axis = strides.size(); axis-- > 0;) {
    strides[axis] = inside;
    inside *= shape.dims()[axis];
  }
  return strides;
}

// A block of elements from input 0 to output 0: all of the smaller of the two, or what an attribute says.
struct Block {
  Index index;
  std::int64_t y_start = 0;
  std::int64_t x_start = 0;
  std::optional<double> around = {};  // what the rest of y is filled with
};

// A part of `whole`, whose first element is `begin`, one element every `steps`; `part` is dense. Towards the
// part or, turned round, away from it.
Block part_of(const Shape& part, const Shape& whole, const Dims& begin, const Dims& steps, bool to_part) {
  const Dims in_part = strides_of(part), in_whole = strides_of(whole);
  Block block;
  for (std::size_t axis = 0; axis < in_whole.size(); ++axis) {
    const std::int64_t own = in_part[axis], step = in_whole[axis] * steps[axis];
    block.index.push(part.dims()[axis], to_part ? Index::Offsets{own, step} : Index::Offsets{step, own});
    (to_part ? block.x_start : block.y_start) += begin[axis] * in_whole[axis];
  }
  if (!to_part) block.around = 0;
  return block;
}

Dims ones(const Shape& shape) { return Dims(shape.dims().size(), 1); }

Block slice(const KernelInit& init) {
  const Shape &x = init.input_shape(0), &y = init.output_shape(0);
  return part_of(y, x, init.attr<Dims>("begin"), ones(x), true);
}
Block slice_grad(const KernelInit& init) {
  const Shape &dy = init.input_shape(0), &dx = init.output_shape(0);
  return part_of(dy, dx, init.attr<Dims>("begin"), ones(dx), false);
}

// The slice has the dimensions that its spec may then drop, each of them in the whole's order.
template <bool kToPart>
Block strided_slice(const KernelInit& init) {
  const Shape& whole = kToPart ? init.input_shape(0) : init.output_shape(0);
  const detail::ResolvedSlice slice = detail::resolve_slice(detail::slice_spec(init), whole);
  return part_of(Shape(slice.count), whole, slice.begin, slice.stride, kToPart);
}

Block reverse(const KernelInit& init) {
  const Shape& x = init.input_shape(0);
  Dims begin(x.dims().size(), 0), steps = ones(x);
  for (const std::int64_t named : init.attr<Dims>("axes")) {
    const auto axis = static_cast<std::size_t>(named < 0 ? named + x.rank() : named);
    begin[axis] = x.dims()[axis] - 1;
    steps[axis] = -1;
  }
  return part_of(x, x, begin, steps, true);
}

// The rows of the batch that are a replica's.
template <bool kToPart>
Block batch_slice(const KernelInit& init) {
  const Shape& batch = kToPart ? init.input_shape(0) : init.output_shape(0);
  const Shape& part = kToPart ? init.output_shape(0) : init.input_shape(0);
  Dims begin(batch.dims().size(), 0);
  begin[0] =
      detail::rows_of_part(batch.dim(0), init.attr<std::int64_t>("index"), init.attr<std::int64_t>("parts"))
          .first;
  return part_of(part, batch, begin, ones(batch), kToPart);
}

Block pad(const KernelInit& init) {
  const Shape &x = init.input_shape(0), &y = init.output_shape(0);
  Block block = part_of(x, y, init.attr<Dims>("before"), ones(y), false);
  block.around = init.attr<double>("value");
  return block;
}

Block transpose(const KernelInit& init) {
  const Shape& y = init.output_shape(0);
  const Dims perm = init.attr<Dims>("perm"), in_x = strides_of(init.input_shape(0)), in_y = strides_of(y);
  Block block;
  for (std::size_t axis = 0; axis < perm.size(); ++axis)
    block.index.push(y.dims()[axis], {in_y[axis], in_x[static_cast<std::size_t>(perm[axis])]});
  return block;
}

Block tile(const KernelInit& init) {
  const Shape& x = init.input_shape(0);
  const Dims multiples = init.attr<Dims>("multiples"), in_x = strides_of(x),
             in_y = strides_of(init.output_shape(0));
  Block block;
  for (std::size_t axis = 0; axis < in_x.size(); ++axis) {
    block.index.push(multiples[axis], {x.dims()[axis] * in_y[axis], 0});
    block.index.push(x.dims()[axis], {in_y[axis], in_x[axis]});
  }
  return block;
}

Block broadcast_to(const KernelInit& init) {
  const Shape& y = init.output_shape(0);
  return {.index = detail::broadcast_index_to(y, y, init.input_shape(0))};
}

void move(const KernelContext& context, const Tensor& y, std::int64_t y_start, const Tensor& x,
          std::int64_t x_start, const Walk<2>& walk, std::int64_t elements) {
  if (elements == 0) return;
  const auto bytes = static_cast<std::int64_t>(size_of(x.dtype()));
  check_cuda(launch_move(stream_of(context), {.bytes_per_element = static_cast<int>(bytes),
                                              .y = y.raw() + y_start * bytes,
                                              .x = x.raw() + x_start * bytes,
                                              .walk = walk,
                                              .elements = elements}),
             "a copy of elements");
}

std::uint64_t bits_of(double value, DType type) {
  std::uint64_t bits = 0;
  detail::with_bits(size_of(type),
                    [&](auto tag) { bits = detail::bits_of<typename decltype(tag)::type>(value, type); });
  return bits;
}

class BlockKernel final : public Kernel {
 public:
  using Make = Block (*)(const KernelInit& init);
  BlockKernel(KernelInit& init, Make make) : block_(make(init)), walk_(walk_of(block_.index)) {
    if (block_.around && block_.index.elements() < init.output_shape(0).elements())
      around_bits_ = bits_of(*block_.around, init.output_dtype(0));
  }
  void compute(KernelContext& context) override {
    const Tensor& y = context.output(0);
    if (around_bits_)
      check_cuda(launch_fill(stream_of(context), {.target = y.raw(),
                                                  .value_bits = *around_bits_,
                                                  .bytes_per_element = static_cast<int>(size_of(y.dtype())),
                                                  .elements = y.elements()}),
                 "fill");
    move(context, y, block_.y_start, context.input(0), block_.x_start, walk_, block_.index.elements());
  }

 private:
  Block block_;
  Walk<2> walk_;
  std::optional<std::uint64_t> around_bits_;
};

// One tensor and its parts along an axis, in either direction.
class PartsKernel final : public Kernel {
 public:
  PartsKernel(KernelInit& init, bool join) : join_(join) {
    const Shape& whole = join ? init.output_shape(0) : init.input_shape(0);
    const int named = init.attr<int>("axis");
    const auto axis = static_cast<std::size_t>(named < 0 ? named + whole.rank() : named);
    Dims begin(whole.dims().size(), 0);
    const int parts = join ? init.num_inputs() : init.num_outputs();
    for (int i = 0; i < parts; ++i) {
      const Shape& part = join ? init.input_shape(i) : init.output_shape(i);
      const Block block = part_of(part, whole, begin, ones(whole), !join);
      parts_.push_back({walk_of(block.index), join ? block.y_start : block.x_start, part.elements()});
      begin[axis] += part.dims()[axis];
    }
  }
  void compute(KernelContext& context) override {
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      const auto& [walk, start, elements] = parts_[i];
      const int number = static_cast<int>(i);
      if (join_) move(context, context.output(0), start, context.input(number), 0, walk, elements);
      else move(context, context.output(number), 0, context.input(0), start, walk, elements);
    }
  }

 private:
  struct Part {
    Walk<2> walk;
    std::int64_t start;
    std::int64_t elements;
  };
  bool join_;
  std::vector<Part> parts_;
};

class OneHotKernel final : public Kernel {
 public:
  explicit OneHotKernel(KernelInit& init)
      : arguments_{.bytes_per_element = static_cast<int>(size_of(init.output_dtype(0))),
                   .indices = nullptr,
                   .index_type = element_type(init.input_dtype(0)),
                   .y = nullptr,
                   .on_bits = bits_of(init.attr<double>("on"), init.output_dtype(0)),
                   .off_bits = bits_of(init.attr<double>("off"), init.output_dtype(0)),
                   .outer = 1,
                   .depth = init.attr<std::int64_t>("depth"),
                   .inner = 1} {
    const Shape& indices = init.input_shape(0);
    const int named = init.attr<int>("axis"), axis = named < 0 ? indices.rank() : named;
    for (int i = 0; i < indices.rank(); ++i)
      (i < axis ? arguments_.outer : arguments_.inner) *= indices.dim(i);
  }
  void compute(KernelContext& context) override {
    arguments_.indices = context.input(0).raw();
    arguments_.y = context.output(0).raw();
    check_cuda(launch_one_hot(stream_of(context), arguments_), "one_hot");
  }

 private:
  OneHotArguments arguments_;
};

RegisterGpuKernel block(const char* op, BlockKernel::Make make) {
  return {op, kAllButStrings, planned<BlockKernel>(make)};
}

const RegisterGpuKernel move_kernels[] = {
    block("Slice", slice),
    block("SliceGrad", slice_grad),
    block("StridedSlice", strided_slice<true>),
    block("StridedSliceGrad", strided_slice<false>),
    block("BatchSlice", batch_slice<true>),
    block("BatchSliceGrad", batch_slice<false>),
    block("Reverse", reverse),
    block("Pad", pad),
    block("Transpose", transpose),
    block("Tile", tile),
    block("BroadcastTo", broadcast_to),
    {"Concat", kAllButStrings, planned<PartsKernel>(true)},
    {"ConcatGrad", kAllButStrings, planned<PartsKernel>(false)},
    {"Split", kAllButStrings, planned<PartsKernel>(false)},
    {"OneHot", {DType::i32, DType::i64, DType::u8}, planned<OneHotKernel>()},
};

}  // namespace
}  // namespace kolo::cuda
