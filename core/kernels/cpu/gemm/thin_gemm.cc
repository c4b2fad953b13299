#include <kolo/core/kernels/cpu/gemm/thin_gemm.h>

#include <algorithm>
#include <array>
#include <utility>

#include <hwy/cache_control.h>

#include <kolo/core/kernels/cpu/loops/each_target-inl.h>

HWY_BEFORE_NAMESPACE();
namespace kolo::detail::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using Floats = hn::CappedTag<float, 16>;
using V = hn::Vec<Floats>;
constexpr std::int64_t kLanes = hn::MaxLanes(Floats());

// So many rows of w are read or written side by side: the processor foresees each of them.
constexpr int kStreams = 4;

#define KOLO_UNROLL _Pragma("GCC unroll 8")

// x's columns from `input` on, each number in all lanes.
template <int kCount, int kRows>
HWY_INLINE void set_factors(const ThinGemm& shape, const float* x, std::int64_t input,
                            V (&factors)[kCount][kRows]) {
  KOLO_UNROLL
  for (int k = 0; k < kCount; ++k) {
    KOLO_UNROLL
    for (int r = 0; r < kRows; ++r) factors[k][r] = hn::Set(Floats(), x[r * shape.inputs + input + k]);
  }
}

// y's columns [first, end) = or += the products of `kCount` inputs, from `input` on.
template <int kRows, int kCount>
void add_inputs(const ThinGemm& shape, const float* x, const float* w, float* y, std::int64_t input,
                std::int64_t first, std::int64_t end) {
  const Floats d;
  V factors[kCount][kRows];
  set_factors(shape, x, input, factors);
  const float* const rows = w + input * shape.outputs;
  for (std::int64_t col = first; col < end; col += kLanes) {
    V row[kCount];
    KOLO_UNROLL
    for (int k = 0; k < kCount; ++k) row[k] = hn::LoadU(d, rows + k * shape.outputs + col);
    KOLO_UNROLL
    for (int r = 0; r < kRows; ++r) {
      float* const to = y + r * shape.outputs + col;
      V sum = input == 0 ? hn::Zero(d) : hn::LoadU(d, to);
      KOLO_UNROLL
      for (int k = 0; k < kCount; ++k) sum = hn::MulAdd(factors[k][r], row[k], sum);
      hn::StoreU(sum, d, to);
    }
  }
}

template <int kRows>
void results(const ThinGemm& shape, const float* x, const float* w, float* y, std::int64_t first,
             std::int64_t end) {
  std::int64_t k = 0;
  for (; k + kStreams <= shape.inputs; k += kStreams)
    add_inputs<kRows, kStreams>(shape, x, w, y, k, first, end);
  for (; k < shape.inputs; ++k) add_inputs<kRows, 1>(shape, x, w, y, k, first, end);
}

// dx's columns input to input + kCount.
template <int kRows, int kCount>
void dot_inputs(const ThinGemm& shape, const float* dy, const float* w, float* dx, std::int64_t input) {
  const Floats d;
  V sums[kCount][kRows];
  KOLO_UNROLL
  for (int k = 0; k < kCount; ++k) {
    KOLO_UNROLL
    for (int r = 0; r < kRows; ++r) sums[k][r] = hn::Zero(d);
  }
  const float* const rows = w + input * shape.outputs;
  for (std::int64_t col = 0; col < shape.outputs; col += kLanes) {
    V row[kCount];
    KOLO_UNROLL
    for (int k = 0; k < kCount; ++k) row[k] = hn::LoadU(d, rows + k * shape.outputs + col);
    KOLO_UNROLL
    for (int r = 0; r < kRows; ++r) {
      const V g = hn::LoadU(d, dy + r * shape.outputs + col);
      KOLO_UNROLL
      for (int k = 0; k < kCount; ++k) sums[k][r] = hn::MulAdd(g, row[k], sums[k][r]);
    }
  }
  KOLO_UNROLL
  for (int k = 0; k < kCount; ++k) {
    KOLO_UNROLL
    for (int r = 0; r < kRows; ++r)
      dx[r * shape.inputs + input + k] = hn::GetLane(hn::SumOfLanes(d, sums[k][r]));
  }
}

template <int kRows>
void input_gradient(const ThinGemm& shape, const float* dy, const float* w, float* dx, std::int64_t first,
                    std::int64_t end) {
  constexpr int kSums = kRows <= 4 ? kStreams : 2;  // all of them in registers
  std::int64_t k = first;
  for (; k + kSums <= end; k += kSums) dot_inputs<kRows, kSums>(shape, dy, w, dx, k);
  for (; k < end; ++k) dot_inputs<kRows, 1>(shape, dy, w, dx, k);
}

// dw's rows input to input + kCount. kStream: past the caches.
template <int kRows, int kCount, bool kStream>
void multiply_inputs(const ThinGemm& shape, const float* x, const float* dy, float* dw, std::int64_t input) {
  const Floats d;
  V factors[kCount][kRows];
  set_factors(shape, x, input, factors);
  float* const rows = dw + input * shape.outputs;
  for (std::int64_t col = 0; col < shape.outputs; col += kLanes) {
    V g[kRows];
    KOLO_UNROLL
    for (int r = 0; r < kRows; ++r) g[r] = hn::LoadU(d, dy + r * shape.outputs + col);
    KOLO_UNROLL
    for (int k = 0; k < kCount; ++k) {
      V sum = hn::Mul(factors[k][0], g[0]);
      KOLO_UNROLL
      for (int r = 1; r < kRows; ++r) sum = hn::MulAdd(factors[k][r], g[r], sum);
      if constexpr (kStream) hn::Stream(sum, d, rows + k * shape.outputs + col);
      else hn::StoreU(sum, d, rows + k * shape.outputs + col);
    }
  }
}

template <int kRows>
void weight_gradient(const ThinGemm& shape, const float* x, const float* dy, float* dw, std::int64_t first,
                     std::int64_t end) {
  // What is larger than the caches comes from memory when it is read: there it goes without being read first.
  constexpr std::int64_t kFar = 4 * 1024 * 1024;
  const auto each = [&](const auto& many, const auto& one) {
    std::int64_t k = first;
    for (; k + kStreams <= end; k += kStreams) many(shape, x, dy, dw, k);
    for (; k < end; ++k) one(shape, x, dy, dw, k);
  };
  if (shape.inputs * shape.outputs >= kFar) {
    each(multiply_inputs<kRows, kStreams, true>, multiply_inputs<kRows, 1, true>);
    hwy::FlushStream();  // before another thread hears of it
  } else each(multiply_inputs<kRows, kStreams, false>, multiply_inputs<kRows, 1, false>);
}

#undef KOLO_UNROLL

using Loop = void (*)(const ThinGemm&, const float*, const float*, float*, std::int64_t, std::int64_t);
using Loops = std::array<Loop, ThinGemm::kMostRows>;
using Counts = std::make_integer_sequence<int, ThinGemm::kMostRows>;

template <int... kRows>
constexpr Loops result_loops(std::integer_sequence<int, kRows...>) {
  return {results<kRows + 1>...};
}
template <int... kRows>
constexpr Loops input_gradient_loops(std::integer_sequence<int, kRows...>) {
  return {input_gradient<kRows + 1>...};
}
template <int... kRows>
constexpr Loops weight_gradient_loops(std::integer_sequence<int, kRows...>) {
  return {weight_gradient<kRows + 1>...};
}

Loop results_of(std::int64_t rows) { return result_loops(Counts())[static_cast<std::size_t>(rows - 1)]; }
Loop input_gradient_of(std::int64_t rows) {
  return input_gradient_loops(Counts())[static_cast<std::size_t>(rows - 1)];
}
Loop weight_gradient_of(std::int64_t rows) {
  return weight_gradient_loops(Counts())[static_cast<std::size_t>(rows - 1)];
}

}  // namespace
}  // namespace kolo::detail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kolo::detail {

HWY_EXPORT(results_of);
HWY_EXPORT(input_gradient_of);
HWY_EXPORT(weight_gradient_of);

void ThinGemm::results(const float* x, const float* w, float* y, std::int64_t first, std::int64_t end) const {
  HWY_DYNAMIC_DISPATCH(results_of)(rows)(*this, x, w, y, first, end);
}

void ThinGemm::input_gradient(const float* dy, const float* w, float* dx, std::int64_t first,
                              std::int64_t end) const {
  HWY_DYNAMIC_DISPATCH(input_gradient_of)(rows)(*this, dy, w, dx, first, end);
}

void ThinGemm::weight_gradient(const float* x, const float* dy, float* dw, std::int64_t first,
                               std::int64_t end) const {
  HWY_DYNAMIC_DISPATCH(weight_gradient_of)(rows)(*this, x, dy, dw, first, end);
}

}  // namespace kolo::detail
#endif  // HWY_ONCE
