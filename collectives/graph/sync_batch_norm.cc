#include <kolo/collectives/graph/collective_ops.h>

#include <algorithm>
#include <memory>

#include <kolo/collectives/graph/group_ops.h>
#include <kolo/core/base/error.h>
#include <kolo/core/kernels/kernel.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/ops/reductions.h>
#include <kolo/core/ops/shapes.h>

namespace kolo {
namespace {

void check(const Output& x, const BatchNormOptions& options) {
  if (!x.shape().has_rank() || x.shape().rank() < 2 || x.shape().dim(1) < 0)
    throw InvalidArgumentError("sync_batch_norm: x is {}; it must be [N,C] or [N,C,…], and C must be known",
                               x.shape());
  if (x.dtype() != DType::f32 && x.dtype() != DType::f64)
    throw InvalidArgumentError("sync_batch_norm: x is {}; it must be float32 or float64",
                               numpy_name(x.dtype()));
  if (!(options.epsilon >= 0) || !(options.momentum >= 0 && options.momentum <= 1))
    throw InvalidArgumentError(
        "sync_batch_norm: epsilon is {} and momentum {}; epsilon must not be negative, momentum be 0 … 1",
        options.epsilon, options.momentum);
}

// A number as a scalar like `like`.
Output number(const Scope& s, const Output& like, double value) { return fill(s, like.dtype(), {}, value); }

struct Parts {
  Output sums, squares;  // [C], over all elements of a channel
  Output count;          // of them, a scalar
};

Parts parts_of(const Scope& s, Output totals, std::int64_t channels) {
  const Outputs parts = split_v(s, totals, {channels, channels, 1});
  return {parts[0], parts[1], reshape(s, parts[2], Shape())};
}

// mean = sums / n, variance = squares / n − mean². Nothing flows back to the count.
Outputs gradients_of_statistics(Scope& s, const Node& op, const Outputs& dy) {
  const std::int64_t channels = op.output_shape(0).dim(0);
  const Parts all = parts_of(s, op.input(0), channels);
  const auto in_double = [&](Output d) {
    return d ? cast(s, d, DType::f64) : zeros(s, DType::f64, {channels});
  };
  const Output dmean = in_double(dy[0]), dvariance = in_double(dy[1]), mean = div(s, all.sums, all.count);
  const Output through_square = mul(s, mul(s, dvariance, mean), number(s, mean, 2));
  return {concat(s,
                 {div(s, sub(s, dmean, through_square), all.count), div(s, dvariance, all.count),
                  zeros(s, DType::f64, {1})},
                 0),
          {},
          {}};
}

// One op, so that the loss is computed together with the moving averages (core/ops/variables.h).
const RegisterOp statistics_op(
    OpSchema("SyncBatchStatistics")
        .input("totals", {DType::f64})
        .input("moving_mean", {DType::f32, DType::f64})
        .input("moving_variance", "moving_mean")
        .required_attr("momentum", 0.0)
        .output("mean", "moving_mean")
        .output("variance", "moving_mean")
        .output("new_moving_mean", "moving_mean")
        .output("new_moving_variance", "moving_mean")
        .shape([](ShapeContext& c) {
          for (int i = 1; i < 3; ++i)
            if (!c.input(i).is_fully_known() || c.input(i).rank() != 1 || c.input(i) != c.input(1))
              throw InvalidArgumentError(
                  "sync_batch_norm: the moving averages are {} and {}; both must be [C]", c.input(1),
                  c.input(2));
          if (!c.input(0).is_compatible_with({2 * c.input(1).dim(0) + 1}))
            throw InvalidArgumentError(
                "sync_batch_norm: the totals are {} for {} channels; they must be [2C+1]", c.input(0),
                c.input(1).dim(0));
          for (int i = 0; i < 4; ++i) c.set_output(i, c.input(1));
        })
        .gradient(GradientFunction(gradients_of_statistics)));

template <typename T>
class StatisticsKernel final : public Kernel {
 public:
  explicit StatisticsKernel(const KernelInit& init) : momentum_(init.attr<double>("momentum")) {}
  void compute(KernelContext& context) override {
    const double* totals = context.input(0).data<double>();
    const std::int64_t channels = context.input(1).elements();
    const double count = totals[2 * channels];
    const double of_sample = count / std::max(count - 1, 1.0);
    for (std::int64_t c = 0; c < channels; ++c) {
      const double mean = totals[c] / count;
      const double variance = std::max(totals[channels + c] / count - mean * mean, 0.0);
      const auto moved = [&](int input, double now) {
        return static_cast<T>(momentum_ * static_cast<double>(context.input(input).data<T>()[c]) +
                              (1 - momentum_) * now);
      };
      context.output(0).data<T>()[c] = static_cast<T>(mean);
      context.output(1).data<T>()[c] = static_cast<T>(variance);
      context.output(2).data<T>()[c] = moved(1, mean);
      context.output(3).data<T>()[c] = moved(2, variance * of_sample);
    }
  }

 private:
  double momentum_;
};

template <typename T>
std::unique_ptr<Kernel> make(KernelInit& init) {
  return std::make_unique<StatisticsKernel<T>>(init);
}

// By the type of the totals: one kernel for both.
const RegisterKernel statistics_kernel("SyncBatchStatistics", "CPU", {DType::f64},
                                       KernelFactory([](KernelInit& init) {
                                         return init.output_dtype(0) == DType::f32 ? make<float>(init)
                                                                                   : make<double>(init);
                                       }));

// [2C+1], in double: the sums of the elements of each channel and of their squares, and how many they are.
// Sums of squares around the own mean first, so that the only differences of large numbers are those of a few
// in double.
Output totals_of(const Scope& s, Output x, const ReduceOptions& all_but_channels) {
  const std::int64_t channels = x.shape().dim(1);
  const Output elements = cast(s, size_of(s, x, DType::i64), DType::f64);
  const Output count = div(s, elements, number(s, elements, static_cast<double>(channels)));
  const Output some = maximum(s, count, number(s, count, 1));
  const Output mean = div(s, reduce_sum(s, x, all_but_channels), cast(s, some, x.dtype()));
  const Output squares = reduce_sum(s, square(s, sub(s, x, mean)), all_but_channels);

  const Shape vector{channels};
  const Output wide_mean = reshape(s, cast(s, mean, DType::f64), vector);
  const Output sums = mul(s, wide_mean, count);
  const Output all_squares =
      add(s, reshape(s, cast(s, squares, DType::f64), vector), mul(s, sums, wide_mean));
  return concat(s, {sums, all_squares, reshape(s, count, {1})}, 0);
}

}  // namespace

BatchNormResult sync_batch_norm(const Scope& s, Output x, Output scale, Output offset, Output moving_mean,
                                Output moving_variance, BatchNormOptions options) {
  check(x, options);
  const Scope scope = s.name_scope(s.wished_name("sync_batch_norm"));
  ReduceOptions all_but_channels{.axes = {0}, .keep_dims = true};
  std::vector<std::int64_t> beside(static_cast<std::size_t>(x.shape().rank()), 1);
  beside[1] = x.shape().dim(1);
  for (int axis = 2; axis < x.shape().rank(); ++axis) all_but_channels.axes.push_back(axis);
  const Shape per_channel(beside);
  const auto spread = [&](Output channels) { return reshape(scope, channels, per_channel); };

  const Output own = totals_of(scope, x, all_but_channels);
  const Operation statistics = scope.named("statistics")
                                   .add("SyncBatchStatistics",
                                        {scheduled_allreduce(scope.named("allreduce"), own, ReduceOp::sum),
                                         moving_mean, moving_variance},
                                        {{"momentum", options.momentum}});
  BatchNormResult result{.y = {},
                         .mean = statistics.output(0),
                         .variance = statistics.output(1),
                         .moving_mean = statistics.output(2),
                         .moving_variance = statistics.output(3)};
  const Output width =
      rsqrt(scope, add(scope, result.variance, number(scope, result.variance, options.epsilon)));
  const Output centred = sub(scope, x, spread(result.mean));
  result.y = add(scope.named("y"), mul(scope, centred, spread(mul(scope, width, scale))), spread(offset));
  return result;
}

}  // namespace kolo
