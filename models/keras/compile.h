// What a model is trained by.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <kolo/core/passes/graph_options.h>
#include <kolo/models/keras/losses.h>
#include <kolo/models/keras/metrics.h>
#include <kolo/models/keras/optimizers.h>

namespace kolo::keras {

/// A device as MXNet's programs name it: gpu(1), cpu(), "gpu(1)".
struct Context {
  Context(const char* text) : Context(std::string(text)) {}
  /// Throws InvalidArgumentError for another text.
  Context(const std::string& text);
  Context(bool gpu, int number) : is_gpu(gpu), id(number) {}
  std::string text() const;    // "gpu(1)"
  std::string device() const;  // "/gpu:1"
  bool is_gpu;
  int id;
};
inline Context gpu(int id = 0) { return {true, id}; }
inline Context cpu(int id = 0) { return {false, id}; }

/// What Model::compile takes, as Keras' compile.
struct CompileOptions {
  Optimizer optimizer = "rmsprop";
  Losses loss = {};
  std::vector<Metric> metrics = {};                                   // of every output with a loss
  std::map<std::string, std::vector<Metric>> metrics_by_output = {};  // by output name; behind `metrics`
  std::map<std::string, double> loss_weights = {};                    // by output name; missing: 1
  std::vector<Metric> weighted_metrics = {};                          // with the samples' weights
  // Several GPUs: as multi_gpu_model (multi_gpu.h) with these, in place; one device: the model runs there.
  std::vector<Context> context = {};
  // Of the products of all models in the workspace (graph_options.precision). Missing: as the workspace has
  // it.
  std::optional<Precision> precision = {};
};

}  // namespace kolo::keras
