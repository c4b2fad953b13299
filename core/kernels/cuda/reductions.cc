#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <kolo/core/base/error.h>
#include <kolo/core/kernels/cuda/cuda_kernel.h>
#include <kolo/core/kernels/cuda/launch_elementwise.h>
#include <kolo/core/kernels/cuda/launch_reductions.h>

namespace kolo::cuda {
namespace {

// The dimensions of a dense tensor in two groups: those that stay and those that are folded away.
struct FoldIndex {
  detail::StridedIndex<1> kept;
  detail::StridedIndex<1> folded;

  template <typename IsFolded>
  FoldIndex(const Shape& shape, const IsFolded& is_folded) {
    std::int64_t stride = shape.elements();
    for (int axis = 0; axis < shape.rank(); ++axis) {
      const std::int64_t dim = shape.dim(axis);
      stride = dim == 0 ? 0 : stride / dim;
      (is_folded(axis) ? folded : kept).push(dim, {stride});
    }
  }
  // Neighbouring elements belong to different results.
  bool rows_are_kept() const { return kept.rank() > 0 && kept.row_strides()[0] == 1; }
};

// The axes of an op's attribute, as the shape function has checked them; none: all.
bool is_folded(const std::vector<std::int64_t>& axes, int axis, int rank) {
  if (axes.empty()) return true;
  return std::any_of(axes.begin(), axes.end(),
                     [&](std::int64_t own) { return own == axis || own == axis - rank; });
}

FoldIndex by_axes(const KernelInit& init) {
  const Shape& x = init.input_shape(0);
  const auto axes = init.attr<std::vector<std::int64_t>>("axes");
  return FoldIndex(x, [&](int axis) { return is_folded(axes, axis, x.rank()); });
}

// All but the channels, of which x has [outer, channels, inner].
FoldIndex but_channels(const KernelInit& init) {
  const Shape& x = init.input_shape(0);
  const int channels = x.rank() == 4 && init.attr<std::string>("data_format") == "NCHW" ? 1 : x.rank() - 1;
  return FoldIndex(x, [&](int axis) { return axis != channels; });
}

// Of the gradient of a tiled tensor the repetitions, each beside the dimension that it repeats.
FoldIndex repetitions(const KernelInit& init) {
  const Shape& dx = init.output_shape(0);
  const auto multiples = init.attr<std::vector<std::int64_t>>("multiples");
  std::vector<std::int64_t> pairs;
  for (int axis = 0; axis < dx.rank(); ++axis) {
    pairs.push_back(multiples[static_cast<std::size_t>(axis)]);
    pairs.push_back(dx.dim(axis));
  }
  return FoldIndex(Shape(std::move(pairs)), [](int axis) { return axis % 2 == 0; });
}

// What broadcasting had repeated to make input 0 of the output.
FoldIndex broadcast_axes(const KernelInit& init) {
  const Shape &from = init.input_shape(0), &to = init.output_shape(0);
  const int missing = from.rank() - to.rank();
  return FoldIndex(from,
                   [&](int axis) { return axis < missing || to.dim(axis - missing) != from.dim(axis); });
}

// So many warps keep today's GPUs busy; parts shorter than this cost more than they save.
constexpr std::int64_t kReduceWarps = 4096;
constexpr std::int64_t kShortestReducePart = 1024;
constexpr std::int64_t kColumnsOfBlock = 32, kWarpsOfBlock = 8;

int parts_for(const ReduceArguments& arguments) {
  const std::int64_t warps = arguments.by_columns
                                 ? (arguments.results + kColumnsOfBlock - 1) / kColumnsOfBlock * kWarpsOfBlock
                                 : arguments.results;
  const std::int64_t shortest =
      arguments.by_columns ? kShortestReducePart / kColumnsOfBlock * 2 : kShortestReducePart;
  const std::int64_t most = std::max<std::int64_t>(1, arguments.count / shortest);
  return static_cast<int>(std::clamp<std::int64_t>(kReduceWarps / std::max<std::int64_t>(1, warps), 1, most));
}

class ReduceKernel final : public Kernel {
 public:
  using Index = FoldIndex (*)(const KernelInit& init);
  ReduceKernel(KernelInit& init, Fold fold, Index index, bool mean = false)
      : arguments_(planned_work(init, fold, index(init), mean)) {
    if (arguments_.parts > 1)
      init.request_scratch(static_cast<std::size_t>(arguments_.results * arguments_.parts) * 8);
  }

  void compute(KernelContext& context) override {
    arguments_.x = context.input(0).raw();
    arguments_.y = context.output(0).raw();
    arguments_.partial = context.scratch();
    check_cuda(launch_reduce(stream_of(context), arguments_), "a reduction");
  }

 private:
  static ReduceArguments planned_work(const KernelInit& init, Fold fold, const FoldIndex& index, bool mean) {
    ReduceArguments arguments{.fold = fold,
                              .type = element_type(init.input_dtype(0)),
                              .x = nullptr,
                              .y = nullptr,
                              .partial = nullptr,
                              .kept = walk_of(index.kept),
                              .folded = walk_of(index.folded),
                              .results = index.kept.elements(),
                              .count = index.folded.elements(),
                              .parts = 1,
                              .by_columns = index.rows_are_kept(),
                              .divisor = mean ? static_cast<double>(index.folded.elements()) : 1};
    arguments.parts = parts_for(arguments);
    return arguments;
  }

  ReduceArguments arguments_;
};

// Input 0 as it is, where nothing had been repeated.
class SumLikeKernel final : public Kernel {
 public:
  explicit SumLikeKernel(KernelInit& init) : api_(gpu_of(init).api) {
    if (init.input_shape(0) != init.output_shape(0)) sum_.emplace(init, Fold::sum, broadcast_axes);
  }
  void compute(KernelContext& context) override {
    const Tensor &dy = context.input(0), &dx = context.output(0);
    if (sum_) sum_->compute(context);
    else copy_within(api_, context, dy, dx);
  }

 private:
  const CudaApi& api_;
  std::optional<ReduceKernel> sum_;
};

// Each element of dx gets its share of the result that it went into.
class SumGradKernel final : public Kernel {
 public:
  explicit SumGradKernel(KernelInit& init) : walk_(walk_of(unfolded(init))) {
    const std::int64_t from = init.input_shape(0).elements(), to = init.output_shape(0).elements();
    const std::int64_t shares = from > 0 ? to / from : 1;  // a whole number
    if (init.attr<bool>("mean")) divisor_ = static_cast<float>(shares);
  }
  void compute(KernelContext& context) override {
    check_cuda(launch_expand(stream_of(context), {.dy = context.input(0).data<float>(),
                                                  .dx = context.output(0).data<float>(),
                                                  .walk = walk_,
                                                  .elements = context.output(0).elements(),
                                                  .divisor = divisor_}),
               "the gradient of a sum");
  }

 private:
  // A stride of 0 along folded dimensions.
  static detail::StridedIndex<1> unfolded(const KernelInit& init) {
    const Shape& dx = init.output_shape(0);
    const auto axes = init.attr<std::vector<std::int64_t>>("axes");
    const auto folded = [&](int axis) { return is_folded(axes, axis, dx.rank()); };
    std::int64_t stride = 1;
    for (int axis = 0; axis < dx.rank(); ++axis)
      if (!folded(axis)) stride *= dx.dim(axis);
    detail::StridedIndex<1> index;
    for (int axis = 0; axis < dx.rank(); ++axis) {
      if (!folded(axis) && dx.dim(axis) > 0) stride /= dx.dim(axis);
      index.push(dx.dim(axis), {folded(axis) ? 0 : stride});
    }
    return index;
  }

  Walk<1> walk_;
  float divisor_ = 1;
};

class PositionKernel final : public Kernel {
 public:
  PositionKernel(KernelInit& init, bool smallest)
      : arguments_{.smallest = smallest,
                   .type = element_type(init.input_dtype(0)),
                   .x = nullptr,
                   .y = nullptr,
                   .outer = 1,
                   .count = 1,
                   .inner = 1} {
    const Shape& x = init.input_shape(0);
    const int named = init.attr<int>("axis"), axis = named < 0 ? named + x.rank() : named;
    for (int i = 0; i < x.rank(); ++i)
      (i < axis ? arguments_.outer : i == axis ? arguments_.count : arguments_.inner) *= x.dim(i);
  }
  void compute(KernelContext& context) override {
    arguments_.x = context.input(0).raw();
    arguments_.y = context.output(0).data<std::int64_t>();
    check_cuda(launch_position(stream_of(context), arguments_), "a search for the largest or smallest");
  }

 private:
  PositionArguments arguments_;
};

const std::vector<DType> kNumbers = {DType::f32, DType::i64};

const RegisterGpuKernel reduction_kernels[] = {
    {"ReduceSum", kNumbers, planned<ReduceKernel>(Fold::sum, by_axes)},
    {"ReduceProd", kNumbers, planned<ReduceKernel>(Fold::product, by_axes)},
    {"ReduceMax", kNumbers, planned<ReduceKernel>(Fold::maximum, by_axes)},
    {"ReduceMin", kNumbers, planned<ReduceKernel>(Fold::minimum, by_axes)},
    {"ReduceMean", {DType::f32}, planned<ReduceKernel>(Fold::sum, by_axes, true)},
    {"ReduceAny", {DType::boolean}, planned<ReduceKernel>(Fold::any, by_axes)},
    {"ReduceAll", {DType::boolean}, planned<ReduceKernel>(Fold::all, by_axes)},
    {"ReduceSumGrad", {DType::f32}, planned<SumGradKernel>()},
    {"SumLike", kNumbers, planned<SumLikeKernel>()},
    {"BiasAddGrad", {DType::f32}, planned<ReduceKernel>(Fold::sum, but_channels)},
    {"TileGrad", {DType::f32}, planned<ReduceKernel>(Fold::sum, repetitions)},
    {"ArgMax", kNumbers, planned<PositionKernel>(false)},
    {"ArgMin", kNumbers, planned<PositionKernel>(true)},
};

}  // namespace
}  // namespace kolo::cuda
