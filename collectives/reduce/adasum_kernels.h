// The arithmetic of Adasum on this rank.
#pragma once

#include <cstddef>
#include <cstdint>

#include <kolo/core/tensor/dtype.h>

namespace kolo {

/// Of two vectors, or of parts of them: a sum of such is the product of the whole.
struct AdasumProducts {
  double ab = 0, aa = 0, bb = 0;
};

/// Adds the products of `elements` elements of a floating type. The order of the sums is fixed.
void add_products(AdasumProducts& products, DType dtype, const std::byte* a, const std::byte* b,
                  std::int64_t elements);

/// dst = (1 − ab/2aa) a + (1 − ab/2bb) b in f64, rounded to the type; dst may be a or b.
void adasum_combine(const AdasumProducts& products, DType dtype, std::byte* dst, const std::byte* a,
                    const std::byte* b, std::int64_t elements);

}  // namespace kolo
