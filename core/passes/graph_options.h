// How much a session may rewrite of a step before it runs it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kolo {

enum class OptimizerLevel {
  l0,  // a step runs node by node as the graph was built
  l1,  // all of graph_pass_names() (pipeline.h), less those that are disabled
};

/// What matrix products and convolutions of f32 are computed in.
enum class Precision {
  /// On CPUs f32; on GPUs convolutions in tf32 and matrix products in f32, as PyTorch does. One info line
  /// says so where a convolution is.
  automatic,
  f32,
  /// On GPUs factors are rounded to 10 bits of mantissa, on tensor cores, and products are added up in f32;
  /// on CPUs f32. Only where NVIDIA's libraries compute, and not with NVIDIA_TF32_OVERRIDE=0.
  tf32,
  /// On CPUs alone. Factors are rounded to bf16 (8 bits of mantissa, f32's range), products are added up in
  /// f32. What comes out is f32: so are variables, gradients and all that is computed from them. A
  /// convolution's images are rounded once more. Needs a CPU that has instructions for it (AMX, AVX512_BF16).
  bf16,
};

/// "automatic", "f32", "tf32" or "bf16"; nothing for another word.
std::optional<Precision> precision_named(std::string_view name);
std::string_view precision_name(Precision precision);
/// "automatic|f32|tf32|bf16", as --help lists them.
inline constexpr char kPrecisionNames[] = "automatic|f32|tf32|bf16";

/// Which passes rewrite a step, and in which precision it computes.
struct GraphOptions {
  OptimizerLevel optimizer_level = OptimizerLevel::l1;
  std::vector<std::string> disabled_passes = {};  // names out of graph_pass_names()
  Precision precision = Precision::automatic;     // the one option that changes what a step computes
};

}  // namespace kolo
