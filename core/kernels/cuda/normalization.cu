// Sums are taken in double, as on the CPU over short pieces: the pieces are other ones here.
#include <cmath>

#include <kolo/core/kernels/cuda/launch_normalization.h>
#include <kolo/core/kernels/elements/folds.h>
#include <kolo/core/kernels/cuda/run.cuh>

namespace kolo::cuda {
namespace {

using elements::divide;
using elements::SumFold;

KOLO_HOST_DEVICE std::int64_t elements_of(const Channels& of) { return of.batch * of.channels * of.inner; }
KOLO_HOST_DEVICE std::int64_t count_of(const Channels& of) { return of.batch * of.inner; }

KOLO_HOST_DEVICE std::int64_t channel_at(const Channels& of, std::int64_t i) {
  return divide(divide(i, of.inner).quotient, of.channels).rest;
}

// The sum of a channel's parts, for each of the team.
template <typename Team>
KOLO_HOST_DEVICE double sum_of_parts(const Team& team, const Channels& of, const double* partial,
                                     std::int64_t channel) {
  double sum = 0;
  for (std::int64_t part = team.lane(); part < of.parts; part += team.lanes())
    sum += partial[channel * of.parts + part];
  return team.template fold<SumFold>(sum);
}

// Calls visit(i) for the elements of part number `unit` of all channels' parts that are this thread's.
template <typename Team, typename Visit>
KOLO_HOST_DEVICE void for_part(const Team& team, const Channels& of, std::int64_t unit, const Visit& visit) {
  const auto [channel, part] = divide(unit, of.parts);
  const std::int64_t count = count_of(of), length = (count + of.parts - 1) / of.parts;
  const std::int64_t begin = part * length, end = begin + length < count ? begin + length : count;
  for (std::int64_t j = begin + team.lane(); j < end; j += team.lanes()) {
    const auto [image, place] = divide(j, of.inner);
    visit((image * of.channels + channel) * of.inner + place);
  }
}

// A batch without elements has the mean 0.
KOLO_HOST_DEVICE double divisor_of(const Channels& of) {
  return count_of(of) > 0 ? static_cast<double>(count_of(of)) : 1;
}

template <typename Team>
KOLO_HOST_DEVICE float mean_of(const Team& team, const BatchNormArguments& of, std::int64_t channel) {
  return static_cast<float>(sum_of_parts(team, of.of, of.partial, channel) / divisor_of(of.of));
}

// Of a channel's parts.
struct PartsWork : BatchNormArguments {
  template <typename Visit>
  void operands(const Visit& visit) {
    visit(x, elements_of(of));
    visit(partial, 2 * of.channels * of.parts);
  }
};

struct SumsWork : PartsWork {
  template <typename Team>
  KOLO_HOST_DEVICE void operator()(const Team& team, std::int64_t unit) const {
    double sum = 0;
    for_part(team, of, unit, [&](std::int64_t i) { sum += x[i]; });
    sum = team.template fold<SumFold>(sum);
    if (team.lane() == 0) partial[unit] = sum;
  }
};

// Of the differences from the mean.
struct SquaresWork : PartsWork {
  template <typename Team>
  KOLO_HOST_DEVICE void operator()(const Team& team, std::int64_t unit) const {
    const float center = mean_of(team, *this, divide(unit, of.parts).quotient);
    double sum = 0;
    for_part(team, of, unit, [&](std::int64_t i) {
      const float difference = x[i] - center;
      sum += static_cast<double>(difference) * difference;
    });
    sum = team.template fold<SumFold>(sum);
    if (team.lane() == 0) partial[of.channels * of.parts + unit] = sum;
  }
};

// A team for each channel.
struct MomentsWork : BatchNormArguments {
  template <typename Team>
  KOLO_HOST_DEVICE void operator()(const Team& team, std::int64_t c) const {
    const float own_mean = mean_of(team, *this, c);
    const double squares = sum_of_parts(team, of, partial + of.channels * of.parts, c);
    if (team.lane() != 0) return;
    const auto own_variance = static_cast<float>(squares / divisor_of(of));
    mean[c] = own_mean;
    variance[c] = own_variance;
    const auto n = static_cast<double>(count_of(of));
    const double share = n == 0 ? 0 : 1 - momentum, correction = n > 1 ? n / (n - 1) : 1;
    new_moving_mean[c] = static_cast<float>(moving_mean[c] + share * (own_mean - moving_mean[c]));
    new_moving_variance[c] =
        static_cast<float>(moving_variance[c] + share * (own_variance * correction - moving_variance[c]));
  }
  template <typename Visit>
  void operands(const Visit& visit) {
    visit(partial, 2 * of.channels * of.parts);
    for (float** output : {&mean, &variance, &new_moving_mean, &new_moving_variance})
      visit(*output, of.channels);
    visit(moving_mean, of.channels);
    visit(moving_variance, of.channels);
  }
};

struct NormalizeWork : BatchNormInferenceArguments {
  KOLO_HOST_DEVICE void operator()(std::int64_t i) const {
    const std::int64_t c = channel_at(of, i);
    const auto factor = static_cast<float>(scale[c] / std::sqrt(variance[c] + epsilon));
    y[i] = (x[i] - mean[c]) * factor + offset[c];
  }
  template <typename Visit>
  void operands(const Visit& visit) {
    visit(x, elements_of(of));
    visit(y, elements_of(of));
    for (const float** input : {&scale, &offset, &mean, &variance}) visit(*input, of.channels);
  }
};

struct GradientSumsWork : BatchNormGradArguments {
  template <typename Team>
  KOLO_HOST_DEVICE void operator()(const Team& team, std::int64_t unit) const {
    const float center = mean[divide(unit, of.parts).quotient];
    double of_dy = 0, of_product = 0;
    for_part(team, of, unit, [&](std::int64_t i) {
      of_dy += dy[i];
      of_product += static_cast<double>(dy[i]) * (x[i] - center);
    });
    of_dy = team.template fold<SumFold>(of_dy);
    of_product = team.template fold<SumFold>(of_product);
    if (team.lane() != 0) return;
    partial[unit] = of_dy;
    partial[of.channels * of.parts + unit] = of_product;
  }
  template <typename Visit>
  void operands(const Visit& visit) {
    visit(x, elements_of(of));
    visit(dy, elements_of(of));
    visit(mean, of.channels);
    visit(partial, 2 * of.channels * of.parts);
  }
};

// dx = c[0] · (dy − c[1] − c[2] · (x − mean))
struct CoefficientsWork : BatchNormGradArguments {
  template <typename Team>
  KOLO_HOST_DEVICE void operator()(const Team& team, std::int64_t c) const {
    const double of_dy = sum_of_parts(team, of, partial, c);
    const double of_product = sum_of_parts(team, of, partial + of.channels * of.parts, c);
    if (team.lane() != 0) return;
    const double r = 1 / std::sqrt(variance[c] + epsilon), n = divisor_of(of);
    doffset[c] = static_cast<float>(of_dy);
    dscale[c] = static_cast<float>(of_product * r);
    coefficients[3 * c] = static_cast<float>(scale[c] * r);
    coefficients[3 * c + 1] = static_cast<float>(of_dy / n);
    coefficients[3 * c + 2] = static_cast<float>(of_product * r * r / n);
  }
  template <typename Visit>
  void operands(const Visit& visit) {
    visit(partial, 2 * of.channels * of.parts);
    visit(coefficients, 3 * of.channels);
    visit(scale, of.channels);
    visit(variance, of.channels);
    visit(dscale, of.channels);
    visit(doffset, of.channels);
  }
};

struct GradientWork : BatchNormGradArguments {
  KOLO_HOST_DEVICE void operator()(std::int64_t i) const {
    const std::int64_t c = channel_at(of, i);
    const float* const own = coefficients + 3 * c;
    dx[i] = own[0] * (dy[i] - own[1] - own[2] * (x[i] - mean[c]));
  }
  template <typename Visit>
  void operands(const Visit& visit) {
    visit(x, elements_of(of));
    visit(dy, elements_of(of));
    visit(dx, elements_of(of));
    visit(mean, of.channels);
    visit(coefficients, 3 * of.channels);
  }
};

}  // namespace

cudaError_t launch_batch_norm(cudaStream_t stream, const BatchNormArguments& arguments) {
  const Channels& of = arguments.of;
  cudaError_t code = run_rows("batch_norm", stream, of.channels * of.parts, SumsWork{{arguments}});
  if (code == cudaSuccess)
    code = run_rows("batch_norm", stream, of.channels * of.parts, SquaresWork{{arguments}});
  if (code == cudaSuccess) code = run_rows("batch_norm", stream, of.channels, MomentsWork{arguments});
  if (code != cudaSuccess) return code;
  return launch_batch_norm_inference(
      stream, {of, arguments.x, arguments.scale, arguments.offset, arguments.mean, arguments.variance,
               arguments.y, arguments.epsilon});
}

cudaError_t launch_batch_norm_grad(cudaStream_t stream, const BatchNormGradArguments& arguments) {
  const Channels& of = arguments.of;
  cudaError_t code = run_rows("batch_norm_grad", stream, of.channels * of.parts, GradientSumsWork{arguments});
  if (code == cudaSuccess)
    code = run_rows("batch_norm_grad", stream, of.channels, CoefficientsWork{arguments});
  if (code != cudaSuccess) return code;
  return run_each("batch_norm_grad", stream, elements_of(of), GradientWork{arguments});
}

cudaError_t launch_batch_norm_inference(cudaStream_t stream, const BatchNormInferenceArguments& arguments) {
  return run_each("batch_norm_inference", stream, elements_of(arguments.of), NormalizeWork{arguments});
}

}  // namespace kolo::cuda
