// A warp or a block for each row, which it reads once: numbers stay in registers between the passes over a
// row. Sums are taken in double, as on the CPU over short pieces: the pieces are other ones here.
#include <cmath>

#include <kolo/core/kernels/cuda/launch_layer_norm.h>
#include <kolo/core/kernels/elements/folds.h>
#include <kolo/core/kernels/cuda/numbers.cuh>
#include <kolo/core/kernels/cuda/run.cuh>

namespace kolo::cuda {
namespace {

using elements::divide;
using elements::SumFold;

// A warp holds as many groups of N numbers of a row: 8 a thread. Longer rows are a block's, which reads them
// thrice: the second and the third time they are in its cache.
template <int N>
constexpr std::int64_t kMostHeld = 256 * N;
// In the gradient a team goes through a run of rows and keeps two sums in double for each column that a
// thread has, so it has fewer.
constexpr std::int64_t kMostOfAWarpsRun = 128;

// Calls visit(place, column) for each group of N columns that is this thread's, of at most kMost; `place` is
// what it is to the thread.
template <int N, std::int64_t kMost, typename Team, typename Visit>
KOLO_HOST_DEVICE void for_groups(const Team& team, std::int64_t width, const Visit& visit) {
  constexpr int kGroups = static_cast<int>(kMost) / (N * Team::lanes());
  KOLO_DEVICE_UNROLL
  for (int group = 0; group < kGroups; ++group) {
    const std::int64_t column = std::int64_t{N} * (group * Team::lanes() + team.lane());
    if (column < width) visit(group * N, column);
  }
}

struct NormWork : LayerNormArguments {
  template <int N>
  KOLO_HOST_DEVICE Numbers<N> sum_at(std::int64_t row, std::int64_t column) const {
    const std::int64_t at = row * width + column;
    Numbers<N> made = read_numbers<N>(x + at);
    if (added == nullptr) return made;
    const Numbers<N> other = read_numbers<N>(added + at);
    Numbers<N> shift = {};
    if (bias != nullptr) shift = read_numbers<N>(bias + column);
    KOLO_DEVICE_UNROLL
    for (int i = 0; i < N; ++i) {
      if (bias != nullptr) made.at[i] += shift.at[i];
      made.at[i] += other.at[i];
    }
    write_numbers<N>(made, sum + at);
    return made;
  }
  KOLO_HOST_DEVICE double divisor() const { return width > 0 ? static_cast<double>(width) : 1; }

  template <int N>
  KOLO_HOST_DEVICE void normalize(const float* from, float center, float factor, std::int64_t row,
                                  std::int64_t column) const {
    const Numbers<N> own_scale = read_numbers<N>(scale + column),
                     own_offset = read_numbers<N>(offset + column);
    Numbers<N> made;
    KOLO_DEVICE_UNROLL
    for (int i = 0; i < N; ++i) made.at[i] = (from[i] - center) * factor * own_scale.at[i] + own_offset.at[i];
    write_numbers<N>(made, y + row * width + column);
  }
  template <typename Visit>
  void operands(const Visit& visit) {
    visit(x, rows * width);
    visit(y, rows * width);
    visit(scale, width);
    visit(offset, width);
    visit(mean, rows);
    visit(inverse, rows);
    if (bias != nullptr) visit(bias, width);
    if (added == nullptr) return;
    visit(added, rows * width);
    visit(sum, rows * width);
  }
};

template <int N>
struct HeldNormWork : NormWork {
  template <typename Team>
  KOLO_HOST_DEVICE void operator()(const Team& team, std::int64_t row) const {
    float held[kMostHeld<N> / Team::lanes()];
    double total = 0, squares = 0;
    for_groups<N, kMostHeld<N>>(team, width, [&](int place, std::int64_t column) {
      const Numbers<N> numbers = sum_at<N>(row, column);
      KOLO_DEVICE_UNROLL
      for (int i = 0; i < N; ++i) total += held[place + i] = numbers.at[i];
    });
    const auto center = static_cast<float>(team.template fold<SumFold>(total) / divisor());
    for_groups<N, kMostHeld<N>>(team, width, [&](int place, std::int64_t) {
      KOLO_DEVICE_UNROLL
      for (int i = 0; i < N; ++i) {
        const float difference = held[place + i] - center;
        squares += static_cast<double>(difference) * difference;
      }
    });
    const double own_variance = team.template fold<SumFold>(squares) / divisor();
    const auto factor = static_cast<float>(1 / std::sqrt(own_variance + epsilon));
    // y may be x: this thread has read what it writes over.
    for_groups<N, kMostHeld<N>>(team, width, [&](int place, std::int64_t column) {
      normalize<N>(held + place, center, factor, row, column);
    });
    if (team.lane() != 0) return;
    mean[row] = center;
    inverse[row] = factor;
  }
};

template <int N>
struct LongNormWork : NormWork {
  template <typename Team>
  KOLO_HOST_DEVICE void operator()(const Team& team, std::int64_t row) const {
    const float* const own = (added == nullptr ? x : sum) + row * width;
    const std::int64_t step = std::int64_t{N} * Team::lanes(), first = std::int64_t{N} * team.lane();
    double total = 0, squares = 0;
    for (std::int64_t column = first; column < width; column += step) {
      const Numbers<N> numbers = sum_at<N>(row, column);
      for (int i = 0; i < N; ++i) total += numbers.at[i];
    }
    const auto center = static_cast<float>(team.template fold<SumFold>(total) / divisor());
    for (std::int64_t column = first; column < width; column += step) {
      const Numbers<N> numbers = read_numbers<N>(own + column);
      for (int i = 0; i < N; ++i) {
        const float difference = numbers.at[i] - center;
        squares += static_cast<double>(difference) * difference;
      }
    }
    const double own_variance = team.template fold<SumFold>(squares) / divisor();
    const auto factor = static_cast<float>(1 / std::sqrt(own_variance + epsilon));
    // Each thread reads what it has written, and writes over what it has read.
    for (std::int64_t column = first; column < width; column += step)
      normalize<N>(read_numbers<N>(own + column).at, center, factor, row, column);
    if (team.lane() != 0) return;
    mean[row] = center;
    inverse[row] = factor;
  }
};

struct NormGradWork : LayerNormGradArguments {
  // dx of N elements of a row, whose means of g and of g · (x − mean) · inverse² are a and b.
  template <int N>
  KOLO_HOST_DEVICE void put(const Numbers<N>& of_dy, const Numbers<N>& centered, const Numbers<N>& own_scale,
                            float a, float b, float factor, std::int64_t at) const {
    Numbers<N> made;
    KOLO_DEVICE_UNROLL
    for (int i = 0; i < N; ++i)
      made.at[i] = factor * (of_dy.at[i] * own_scale.at[i] - a - b * centered.at[i]);
    if (added != nullptr) {
      const Numbers<N> other = read_numbers<N>(added + at);
      KOLO_DEVICE_UNROLL
      for (int i = 0; i < N; ++i) made.at[i] += other.at[i];
    }
    write_numbers<N>(made, dx + at);
  }
  template <typename Visit>
  void operands(const Visit& visit) {
    visit(x, rows * width);
    visit(dy, rows * width);
    visit(dx, rows * width);
    visit(scale, width);
    visit(mean, rows);
    visit(inverse, rows);
    visit(partial, 2 * parts * width);
    if (added != nullptr) visit(added, rows * width);
  }
};

// A run of rows, one after the other: dx of each, and of each column the sums over them.
template <int N, std::int64_t kMost>
struct RunOfRowsWork : NormGradWork {
  template <typename Team>
  KOLO_HOST_DEVICE void operator()(const Team& team, std::int64_t part) const {
    constexpr int kOwn = static_cast<int>(kMost) / Team::lanes();
    const std::int64_t length = (rows + parts - 1) / parts, begin = part * length;
    const std::int64_t end = begin + length < rows ? begin + length : rows;
    double of_dy[kOwn] = {}, of_product[kOwn] = {};
    for (std::int64_t row = begin; row < end; ++row) {
      const float center = mean[row], factor = inverse[row];
      Numbers<N> own_dy[kOwn / N], centered[kOwn / N];
      double of_g = 0, of_gz = 0;
      for_groups<N, kMost>(team, width, [&](int place, std::int64_t column) {
        const std::int64_t at = row * width + column;
        own_dy[place / N] = read_numbers<N>(dy + at);
        centered[place / N] = read_numbers<N>(x + at);
        const Numbers<N> own_scale = read_numbers<N>(scale + column);
        KOLO_DEVICE_UNROLL
        for (int i = 0; i < N; ++i) {
          float& difference = centered[place / N].at[i];
          difference -= center;
          const float up = own_dy[place / N].at[i];
          const double g = static_cast<double>(up) * own_scale.at[i];
          of_g += g;
          of_gz += g * difference;
          of_dy[place + i] += up;
          of_product[place + i] += static_cast<double>(up) * (difference * factor);
        }
      });
      const double r = factor, n = static_cast<double>(width);
      const auto a = static_cast<float>(team.template fold<SumFold>(of_g) / n);
      const auto b = static_cast<float>(team.template fold<SumFold>(of_gz) * r * r / n);
      for_groups<N, kMost>(team, width, [&](int place, std::int64_t column) {
        put<N>(own_dy[place / N], centered[place / N], read_numbers<N>(scale + column), a, b, factor,
               row * width + column);
      });
    }
    for_groups<N, kMost>(team, width, [&](int place, std::int64_t column) {
      KOLO_DEVICE_UNROLL
      for (int i = 0; i < N; ++i) {
        partial[part * width + column + i] = of_dy[place + i];
        partial[(parts + part) * width + column + i] = of_product[place + i];
      }
    });
  }
};

// Rows that no team holds.
struct LongRowsWork : NormGradWork {
  template <typename Team>
  KOLO_HOST_DEVICE void operator()(const Team& team, std::int64_t row) const {
    const std::int64_t at = row * width;
    const float center = mean[row];
    double of_g = 0, of_product = 0;
    for (std::int64_t j = team.lane(); j < width; j += team.lanes()) {
      const double g = static_cast<double>(dy[at + j]) * scale[j];
      of_g += g;
      of_product += g * (x[at + j] - center);
    }
    const double r = inverse[row], n = static_cast<double>(width);
    const auto a = static_cast<float>(team.template fold<SumFold>(of_g) / n);
    const auto b = static_cast<float>(team.template fold<SumFold>(of_product) * r * r / n);
    for (std::int64_t j = team.lane(); j < width; j += team.lanes())
      put<1>({dy[at + j]}, {x[at + j] - center}, {scale[j]}, a, b, inverse[row], at + j);
  }
};

// A thread for each column of a part, so that neighbours read neighbours.
struct ColumnSumsWork : NormGradWork {
  KOLO_HOST_DEVICE void operator()(std::int64_t unit) const {
    const auto [part, column] = divide(unit, width);
    const std::int64_t length = (rows + parts - 1) / parts, begin = part * length;
    const std::int64_t end = begin + length < rows ? begin + length : rows;
    double of_dy = 0, of_product = 0;
    for (std::int64_t row = begin; row < end; ++row) {
      const std::int64_t at = row * width + column;
      of_dy += dy[at];
      of_product += static_cast<double>(dy[at]) * ((x[at] - mean[row]) * inverse[row]);
    }
    partial[unit] = of_dy;
    partial[parts * width + unit] = of_product;
  }
};

struct ColumnsWork : LayerNormGradArguments {
  template <typename Team>
  KOLO_HOST_DEVICE void operator()(const Team& team, std::int64_t column) const {
    double of_dy = 0, of_product = 0;
    for (std::int64_t part = team.lane(); part < parts; part += team.lanes()) {
      of_dy += partial[part * width + column];
      of_product += partial[(parts + part) * width + column];
    }
    of_dy = team.template fold<SumFold>(of_dy);
    of_product = team.template fold<SumFold>(of_product);
    if (team.lane() != 0) return;
    doffset[column] = static_cast<float>(of_dy);
    dscale[column] = static_cast<float>(of_product);
  }
  template <typename Visit>
  void operands(const Visit& visit) {
    visit(partial, 2 * parts * width);
    visit(doffset, width);
    visit(dscale, width);
  }
};

template <int N>
cudaError_t norm(cudaStream_t stream, const NormWork& work) {
  return work.width > kMostHeld<N> ? run_blocks("layer_norm", stream, work.rows, LongNormWork<N>{work})
                                   : run_rows("layer_norm", stream, work.rows, HeldNormWork<N>{work});
}

// What is left to do is to add up the parts.
template <int N>
cudaError_t runs_of_rows(cudaStream_t stream, const NormGradWork& work) {
  constexpr char kName[] = "layer_norm_grad";
  if (work.width <= kMostOfAWarpsRun)
    return run_rows(kName, stream, work.parts, RunOfRowsWork<N, kMostOfAWarpsRun>{work});
  if (work.width <= kWidestHeldGradient / 2)
    return run_blocks(kName, stream, work.parts, RunOfRowsWork<N, kWidestHeldGradient / 2>{work});
  if (work.width <= kWidestHeldGradient)
    return run_blocks(kName, stream, work.parts, RunOfRowsWork<N, kWidestHeldGradient>{work});
  const cudaError_t code = run_blocks(kName, stream, work.rows, LongRowsWork{work});
  if (code != cudaSuccess) return code;
  return run_each(kName, stream, work.parts * work.width, ColumnSumsWork{work});
}

}  // namespace

cudaError_t launch_layer_norm(cudaStream_t stream, const LayerNormArguments& of) {
  const bool fours = are_fours(of.width, {of.x, of.scale, of.offset, of.y, of.added, of.bias, of.sum});
  return fours ? norm<4>(stream, {of}) : norm<1>(stream, {of});
}

cudaError_t launch_layer_norm_grad(cudaStream_t stream, const LayerNormGradArguments& of) {
  const bool fours = are_fours(of.width, {of.x, of.scale, of.dy, of.dx, of.added});
  const cudaError_t code = fours ? runs_of_rows<4>(stream, {of}) : runs_of_rows<1>(stream, {of});
  if (code != cudaSuccess) return code;
  return run_rows("layer_norm_grad", stream, of.width, ColumnsWork{of});
}

}  // namespace kolo::cuda
