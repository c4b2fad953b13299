// Activations and their derivatives. R: a float or a double, or a vector of floats (cpu/loops/lanes-inl.h).
// Each has value(x, alpha) and derivative(x, alpha); one without a parameter ignores alpha. For NaN they give
// anything: callers keep it.
//
// No guard and no namespace: activations.h includes the formulas for numbers, cpu/loops/activation_loops.cc
// for vectors, once for each instruction set (update_formulas-inl.h says why).

/// 1 / (1 + e⁻ˣ), from the exponential that cannot overflow.
template <typename R>
KOLO_HOST_DEVICE inline R logistic(R x) {
  const R e = exponential(R(0) - absolute(x)), small = e / (R(1) + e);
  return where_greater(x, R(0), R(1) - small, small);
}

struct Gelu {
  static constexpr const char* kName = "Gelu";
  template <typename R>
  KOLO_HOST_DEVICE static R value(R x, R) {
    return x * normal(x).distribution;
  }
  template <typename R>
  KOLO_HOST_DEVICE static R derivative(R x, R) {
    constexpr double kOneOverSqrt2Pi = 0.39894228040143268;
    const auto of_x = normal(x);
    return of_x.distribution + x * R(kOneOverSqrt2Pi) * of_x.bell;
  }
};
struct GeluTanh {
  static constexpr const char* kName = "GeluTanh";
  static constexpr double kSqrt2OverPi = 0.79788456080286536;
  template <typename R>
  KOLO_HOST_DEVICE static R tangent(R x) {
    return hyperbolic_tangent(R(kSqrt2OverPi) * x * (R(1) + R(0.044715) * x * x));
  }
  template <typename R>
  KOLO_HOST_DEVICE static R value(R x, R) {
    return R(0.5) * x * (R(1) + tangent(x));
  }
  template <typename R>
  KOLO_HOST_DEVICE static R derivative(R x, R) {
    const R t = tangent(x);
    // 1 − t² is 0 where x² would be infinite.
    const R slope = (R(1) - t * t) * R(kSqrt2OverPi) * (R(1) + R(3 * 0.044715) * x * x);
    return R(0.5) * (R(1) + t) + R(0.5) * x * where_greater(absolute(x), R(20), R(0), slope);
  }
};
struct Swish {
  static constexpr const char* kName = "Swish";
  template <typename R>
  KOLO_HOST_DEVICE static R value(R x, R) {
    return x * logistic(x);
  }
  template <typename R>
  KOLO_HOST_DEVICE static R derivative(R x, R) {
    const R y = logistic(x);
    return y * (R(1) + x * (R(1) - y));
  }
};
struct Elu {
  static constexpr const char* kName = "Elu";
  template <typename R>
  KOLO_HOST_DEVICE static R value(R x, R alpha) {
    return where_greater(x, R(0), x, alpha * exponential_minus_1(x));
  }
  template <typename R>
  KOLO_HOST_DEVICE static R derivative(R x, R alpha) {
    return where_greater(x, R(0), R(1), alpha * exponential(x));
  }
};
struct Selu {
  static constexpr const char* kName = "Selu";
  static constexpr double kScale = 1.0507009873554805, kAlpha = 1.6732632423543772;
  template <typename R>
  KOLO_HOST_DEVICE static R value(R x, R) {
    return R(kScale) * Elu::value(x, R(kAlpha));
  }
  template <typename R>
  KOLO_HOST_DEVICE static R derivative(R x, R) {
    return R(kScale) * Elu::derivative(x, R(kAlpha));
  }
};
struct LeakyRelu {
  static constexpr const char* kName = "LeakyRelu";
  template <typename R>
  KOLO_HOST_DEVICE static R value(R x, R alpha) {
    return where_greater(x, R(0), x, alpha * x);
  }
  template <typename R>
  KOLO_HOST_DEVICE static R derivative(R x, R alpha) {
    return where_greater(x, R(0), R(1), alpha);
  }
};
struct Softplus {
  static constexpr const char* kName = "Softplus";
  template <typename R>
  KOLO_HOST_DEVICE static R value(R x, R) {
    return where_greater(x, R(0), x, R(0)) + log_1_plus(exponential(R(0) - absolute(x)));
  }
  template <typename R>
  KOLO_HOST_DEVICE static R derivative(R x, R) {
    return logistic(x);
  }
};
struct Relu6 {
  static constexpr const char* kName = "Relu6";
  template <typename R>
  KOLO_HOST_DEVICE static R value(R x, R) {
    return where_greater(R(0), x, R(0), where_greater(x, R(6), R(6), x));
  }
  template <typename R>
  KOLO_HOST_DEVICE static R derivative(R x, R) {
    return where_greater(x, R(0), where_greater(R(6), x, R(1), R(0)), R(0));
  }
};

using Activations = List<Gelu, GeluTanh, Swish, Elu, Selu, LeakyRelu, Softplus, Relu6>;
