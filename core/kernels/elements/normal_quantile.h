// The inverse of the normal distribution's cumulative function.
#pragma once

#include <cmath>

#include <kolo/core/kernels/elements/host_device.h>

namespace kolo::detail {

/// Of the highest power first.
template <int kCount>
KOLO_HOST_DEVICE inline double polynomial(const double (&coefficients)[kCount], double x) {
  double sum = coefficients[0];
  for (int i = 1; i < kCount; ++i) sum = sum * x + coefficients[i];
  return sum;
}

/// x with Φ(x) = p, for p in [Φ(−2), Φ(2)]; relative error about 1e-16.
/// Wichura: "Algorithm AS 241: The percentage points of the normal distribution", Applied Statistics 37
/// (1988), PPND16, without its branch for the far tails.
KOLO_HOST_DEVICE inline double normal_quantile_within_two(double p) {
  const double q = p - 0.5;
  if (std::abs(q) <= 0.425) {
    const double above[] = {2.5090809287301226727e3, 3.3430575583588128105e4, 6.7265770927008700853e4,
                            4.5921953931549871457e4, 1.3731693765509461125e4, 1.9715909503065514427e3,
                            1.3314166789178437745e2, 3.3871328727963666080e0};
    const double below[] = {
        5.2264952788528545610e3, 2.8729085735721942674e4, 3.9307895800092710610e4, 2.1213794301586595867e4,
        5.3941960214247511077e3, 6.8718700749205790830e2, 4.2313330701600911252e1, 1.0};
    const double r = 0.180625 - q * q;
    return q * polynomial(above, r) / polynomial(below, r);
  }
  const double above[] = {7.74545014278341407640e-4, 2.27238449892691845833e-2, 2.41780725177450611770e-1,
                          1.27045825245236838258e0,  3.64784832476320460504e0,  5.76949722146069140550e0,
                          4.63033784615654529590e0,  1.42343711074968357734e0};
  const double below[] = {1.05075007164441684324e-9, 5.47593808499534494600e-4,
                          1.51986665636164571966e-2, 1.48103976427480074590e-1,
                          6.89767334985100004550e-1, 1.67638483018380384940e0,
                          2.05319162663775882187e0,  1.0};
  const double r = std::sqrt(-std::log(q < 0 ? p : 1 - p)) - 1.6;
  const double ratio = polynomial(above, r) / polynomial(below, r);
  return q < 0 ? -ratio : ratio;
}

}  // namespace kolo::detail
