// The model zoo by name: what programs take from a command line. A model is one file that registers its
// builder.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <kolo/core/base/source_line.h>
#include <kolo/core/graph/scope.h>

namespace kolo::models {

/// What of a model its user may choose; 0: as the model has it.
struct ModelSize {
  std::int64_t classes = 0;  // columns of the logits; of a model of tokens its vocabulary
  std::int64_t layers = 0;   // the following of models whose `sizes` name them
  std::int64_t width = 0;
  std::int64_t heads = 0;
  double dropout = 0;  // "dropout": the share of numbers that is dropped in training
};

/// A registered model: what kolo-train needs to build it.
struct Model {
  std::string name;
  Shape sample;          // of one input: a batch is [N, sample…]
  std::int64_t classes;  // columns of the logits; labels are 0 … classes − 1
  Output (*builder)(Scope& s, Output x, const ModelSize& size);
  DType input = DType::f32;  // i32: samples of T tokens 0 … classes − 1
  std::vector<std::string> sizes =
      {};  // what can be chosen: "layers", "width", "heads", "dropout", "context"

  bool takes(std::string_view what) const;  // whether `sizes` name it
  std::int64_t labels_per_sample() const { return input == DType::i32 ? sample.dim(0) : 1; }
  /// Makes the variables, and logits [N, classes] from a batch x; of a model of tokens [N·T, classes], with a
  /// label for each. Throws InvalidArgumentError for what the model cannot be made of, and for a size that it
  /// does not let choose.
  Output build(Scope& s, Output x, const ModelSize& size = {}) const;
};

/// A namespace-scope constant of a model's file. A second model of one name is an InternalError at start-up.
struct RegisterModel {
  explicit RegisterModel(Model model, SourceLine place = SourceLine::here());
};

/// Throws InvalidArgumentError that names the nearest model and all that there are.
const Model& find_model(const std::string& name);
/// Sorted.
std::vector<std::string> registered_models();

}  // namespace kolo::models
