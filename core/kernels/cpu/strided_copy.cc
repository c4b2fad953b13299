#include <kolo/core/kernels/cpu/strided_copy.h>

#include <algorithm>
#include <cstdint>

#include <kolo/core/kernels/cpu/element_bits.h>
#include <kolo/core/kernels/cpu/parallel_rows.h>

namespace kolo::detail {

void gather_strided(const StridedIndex<1>& index, std::size_t size, const std::byte* from, std::byte* to) {
  with_bits(size, [&](auto tag) {
    using Bits = typename decltype(tag)::type;
    const auto* source = reinterpret_cast<const Bits*>(from);
    auto* target = reinterpret_cast<Bits*>(to);
    const std::int64_t step = index.row_strides()[0];
    parallel_rows(index, [=](std::int64_t at, const auto& offsets, std::int64_t count) {
      const Bits* x = source + offsets[0];
      if (step == 1) std::copy_n(x, count, target + at);
      else if (step == 0) std::fill_n(target + at, count, *x);
      else
        for (std::int64_t i = 0; i < count; ++i) target[at + i] = x[i * step];
    });
  });
}

void scatter_strided(const StridedIndex<1>& index, std::size_t size, const std::byte* from, std::byte* to) {
  with_bits(size, [&](auto tag) {
    using Bits = typename decltype(tag)::type;
    const auto* source = reinterpret_cast<const Bits*>(from);
    auto* target = reinterpret_cast<Bits*>(to);
    const std::int64_t step = index.row_strides()[0];
    parallel_rows(index, [=](std::int64_t at, const auto& offsets, std::int64_t count) {
      Bits* y = target + offsets[0];
      if (step == 1) std::copy_n(source + at, count, y);
      else
        for (std::int64_t i = 0; i < count; ++i) y[i * step] = source[at + i];
    });
  });
}

}  // namespace kolo::detail
