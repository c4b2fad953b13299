#include <cmath>
#include <limits>
#include <type_traits>

#include <kolo/core/kernels/cpu/element_types.h>
#include <kolo/core/kernels/cpu/parallel.h>
#include <kolo/core/kernels/kernel.h>

namespace kolo {
namespace {

// Float to whole number beyond its range is undefined in C++: the nearest number it has.
template <typename To, typename From>
To to_integer(From value) {
  // 2^digits is exact in every float type, max() itself is not.
  const From limit = std::ldexp(From(1), std::numeric_limits<To>::digits);
  if (std::isnan(value)) return 0;
  if (value >= limit) return std::numeric_limits<To>::max();
  if (value <= (std::is_signed_v<To> ? -limit : From(0))) return std::numeric_limits<To>::lowest();
  return static_cast<To>(value);
}

template <typename To, typename From>
To converted(From value) {
  if constexpr (detail::kIsSmallFloat<From>) return converted<To>(static_cast<float>(value));
  else if constexpr (detail::kIsSmallFloat<To>) return To(static_cast<float>(value));
  else if constexpr (std::is_same_v<To, bool>) return value != From(0);
  else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) return to_integer<To>(value);
  else return static_cast<To>(value);
}

void cast(KernelContext& context) {
  const Tensor& x = context.input(0);
  const Tensor& y = context.output(0);
  detail::with_type(x.dtype(), [&](auto from_tag) {
    detail::with_type(y.dtype(), [&](auto to_tag) {
      using From = typename decltype(from_tag)::type;
      using To = typename decltype(to_tag)::type;
      const From* from = x.data<From>();
      To* to = y.data<To>();
      parallel_for(x.elements(), kElementGrain, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) to[i] = converted<To>(from[i]);
      });
    });
  });
}

const RegisterKernel cast_kernel("Cast", "CPU", {}, cast);

}  // namespace
}  // namespace kolo
