#include <kolo/collectives/sync_batch_norm.h>

#include <kolo/collectives/graph_ops.h>
#include <kolo/core/base/error.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/cast.h>
#include <kolo/core/ops/concat.h>
#include <kolo/core/ops/elementwise.h>
#include <kolo/core/ops/reductions.h>
#include <kolo/core/ops/reshape.h>
#include <kolo/core/ops/shape_of.h>

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

// What differs between the channels, and how many elements each has.
struct Statistics {
  Output mean, variance;  // [C]
  Output count;           // a scalar
};

// Of the whole batch. Sums of squares around the own mean first, so that the only differences of large
// numbers are those of a few in double.
Statistics statistics_of_all_ranks(const Scope& s, Output x, const ReduceOptions& all_but_channels) {
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
  const Output all = allreduce(s.named("allreduce"),
                               concat(s, {sums, all_squares, reshape(s, count, {1})}, 0), ReduceOp::sum);
  const Outputs parts = split_v(s, all, {channels, channels, 1});
  const Output total = reshape(s, parts[2], Shape());
  const Output common = div(s, parts[0], total);
  const Output variance = sub(s, div(s, parts[1], total), square(s, common));
  return {.mean = common, .variance = maximum(s, variance, number(s, variance, 0)), .count = total};
}

}  // namespace

BatchNormResult sync_batch_norm(const Scope& s, Output x, Output scale, Output offset, Output moving_mean,
                                Output moving_variance, BatchNormOptions options) {
  check(x, options);
  const Scope scope = s.name_scope(s.wished_name("sync_batch_norm"));
  const DType dtype = x.dtype();
  ReduceOptions all_but_channels{.axes = {0}, .keep_dims = true};
  std::vector<std::int64_t> beside(static_cast<std::size_t>(x.shape().rank()), 1);
  beside[1] = x.shape().dim(1);
  for (int axis = 2; axis < x.shape().rank(); ++axis) all_but_channels.axes.push_back(axis);
  const Shape per_channel(beside);
  const auto spread = [&](Output channels) { return reshape(scope, channels, per_channel); };

  const Statistics all = statistics_of_all_ranks(scope, x, all_but_channels);
  BatchNormResult result;
  result.mean = cast(scope.named("mean"), all.mean, dtype);
  result.variance = cast(scope.named("variance"), all.variance, dtype);
  const Output width =
      rsqrt(scope, add(scope, result.variance, number(scope, result.variance, options.epsilon)));
  const Output centred = sub(scope, x, spread(result.mean));
  result.y = add(scope.named("y"), mul(scope, centred, spread(mul(scope, width, scale))), spread(offset));

  const Output one = number(scope, all.count, 1);
  const Output of_sample = div(scope, all.count, maximum(scope, sub(scope, all.count, one), one));
  const auto moved = [&](const char* name, Output old, Output now) {
    return add(scope.named(name), mul(scope, old, number(scope, old, options.momentum)),
               mul(scope, now, number(scope, now, 1 - options.momentum)));
  };
  result.moving_mean = moved("moving_mean", moving_mean, result.mean);
  result.moving_variance =
      moved("moving_variance", moving_variance, cast(scope, mul(scope, all.variance, of_sample), dtype));
  return result;
}

}  // namespace kolo
