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

/// What CPUs compute matrix products and convolutions of f32 in.
enum class Precision {
  f32,
  /// Factors are rounded to bf16 (8 bits of mantissa, f32's range), products are added up in f32. What comes
  /// out is f32: so are variables, gradients and all that is computed from them. A convolution's images are
  /// rounded once more. Needs a CPU that has instructions for it (AMX, AVX512_BF16).
  bf16,
};

/// "f32" or "bf16"; nothing for another word.
std::optional<Precision> precision_named(std::string_view name);
std::string_view precision_name(Precision precision);

/// Which passes rewrite a step, and in which precision it computes.
struct GraphOptions {
  OptimizerLevel optimizer_level = OptimizerLevel::l1;
  std::vector<std::string> disabled_passes = {};  // names out of graph_pass_names()
  Precision precision = Precision::f32;           // the one option that changes what a step computes
};

}  // namespace kolo
