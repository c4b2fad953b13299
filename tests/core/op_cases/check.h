// Compares what a device makes of a case with what the CPU makes of it.
#pragma once

#include <random>
#include <string>

#include <kolo/core/runtime/config.h>
#include <kolo/core/tensor/tensor.h>
#include <tests/core/op_cases/op_cases.h>

namespace kolo::op_cases {

inline constexpr double kOfProducts = 1e-5;  // of the sum of magnitudes
inline constexpr double kOfOthers = 1e-6;    // of the largest element
inline constexpr double kOfTf32 = 1e-3;      // of the norm: each operand is rounded to 11 bits

struct Verdict {
  double error = 0;  // NaN where a number is none
  std::string unit;
  double limit = 0;
};

/// The case in f32 and its gradients on `device`, which is a GPU's or the CPU's "/cpu:0", on random data
/// beside the CPU in f64; so many repeats have the same bits. On the CPU `same` is `near`, and nothing is
/// `drawn`. Throws what sessions throw.
/// precision tf32: the norm of what differs, beside that of the result.
Verdict check(const Case& tested, const std::string& device, int repeats,
              Precision precision = Precision::f32);
/// Whether precision tf32 rounds what it multiplies.
bool has_products(const Case& tested);

/// Of numbers in [−1, 1).
Tensor random_tensor(const Shape& shape, std::mt19937& bits);
/// In f64.
Tensor wide(const Tensor& narrow, bool magnitudes);
bool same_bits(const Tensor& a, const Tensor& b);
/// The largest error, as a part of the magnitude; NaN where one is. exact, magnitudes: f64.
double error_of(const Tensor& narrow, const Tensor& exact, const Tensor& magnitudes, Judge judge);
/// Nodes run where they were asked for.
SessionConfig strict_config(Precision precision = Precision::f32);

}  // namespace kolo::op_cases
