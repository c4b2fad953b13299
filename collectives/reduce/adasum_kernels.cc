#include <kolo/collectives/reduce/adasum_kernels.h>

#include <algorithm>
#include <array>

#include <kolo/collectives/reduce/reduce.h>
#include <kolo/core/base/error.h>

namespace kolo {
namespace {

constexpr std::int64_t kBlock = 1024;  // elements that are widened at a time

// Eight sums side by side, which the compiler turns into vectors.
template <typename T>
void add_products_of(AdasumProducts& products, const T* a, const T* b, std::int64_t elements) {
  constexpr int kLanes = 8;
  std::array<double, kLanes> ab{}, aa{}, bb{};
  const auto add = [&](int lane, double x, double y) {
    ab[lane] += x * y;
    aa[lane] += x * x;
    bb[lane] += y * y;
  };
  std::int64_t i = 0;
  for (; i + kLanes <= elements; i += kLanes)
    for (int lane = 0; lane < kLanes; ++lane) add(lane, a[i + lane], b[i + lane]);
  for (; i < elements; ++i) add(0, a[i], b[i]);
  for (int lane = 0; lane < kLanes; ++lane) {
    products.ab += ab[lane];
    products.aa += aa[lane];
    products.bb += bb[lane];
  }
}

template <typename T>
void combine(double ca, double cb, T* dst, const T* a, const T* b, std::int64_t elements) {
  for (std::int64_t i = 0; i < elements; ++i) dst[i] = static_cast<T>(ca * a[i] + cb * b[i]);
}

// Calls body(a's block in f32, b's, first element, elements) for 16-bit types.
template <class Body>
void for_each_widened_block(DType dtype, const std::byte* a, const std::byte* b, std::int64_t elements,
                            const Body& body) {
  std::array<float, kBlock> wide_a, wide_b;
  for (std::int64_t first = 0; first < elements; first += kBlock) {
    const std::int64_t count = std::min(kBlock, elements - first);
    widen(dtype, wide_a.data(), a + 2 * first, count);
    widen(dtype, wide_b.data(), b + 2 * first, count);
    body(wide_a.data(), wide_b.data(), first, count);
  }
}

template <typename T>
const T* as(const std::byte* bytes) {
  return reinterpret_cast<const T*>(bytes);
}

}  // namespace

void add_products(AdasumProducts& products, DType dtype, const std::byte* a, const std::byte* b,
                  std::int64_t elements) {
  if (dtype == DType::f32) return add_products_of(products, as<float>(a), as<float>(b), elements);
  if (dtype == DType::f64) return add_products_of(products, as<double>(a), as<double>(b), elements);
  for_each_widened_block(dtype, a, b, elements,
                         [&](const float* x, const float* y, std::int64_t, std::int64_t count) {
                           add_products_of(products, x, y, count);
                         });
}

void adasum_combine(const AdasumProducts& products, DType dtype, std::byte* dst, const std::byte* a,
                    const std::byte* b, std::int64_t elements) {
  const double ca = products.aa == 0 ? 1 : 1 - products.ab / (2 * products.aa);
  const double cb = products.bb == 0 ? 1 : 1 - products.ab / (2 * products.bb);
  if (dtype == DType::f32)
    return combine(ca, cb, reinterpret_cast<float*>(dst), as<float>(a), as<float>(b), elements);
  if (dtype == DType::f64)
    return combine(ca, cb, reinterpret_cast<double*>(dst), as<double>(a), as<double>(b), elements);
  for_each_widened_block(dtype, a, b, elements,
                         [&](float* x, const float* y, std::int64_t first, std::int64_t count) {
                           combine(ca, cb, x, x, y, count);
                           narrow(dtype, dst + 2 * first, x, count);
                         });
}

}  // namespace kolo
