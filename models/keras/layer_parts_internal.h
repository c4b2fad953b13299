// What several layers share: checks of shapes, reshapes behind the batch, images in either layout, the
// options of kernels.
#pragma once

#include <string>

#include <kolo/models/keras/layer_internal.h>

namespace kolo::keras::detail {

void require_positive(const char* layer, const char* what, std::int64_t number);
/// Throws InvalidArgumentError unless it is "valid" or "same".
void check_padding(const char* layer, const std::string& padding);
/// Keras' `Input 0 is incompatible with layer <l>: expected ndim=<n>, found ndim=<k>`.
void require_rank(const LayerImpl& layer, const Shape& shape, int rank);
/// `Input 0 is incompatible with layer <l>: expected axis -1 of input shape to have value <n> but got shape
/// <s>`.
void require_last_dim(const LayerImpl& layer, const Shape& shape, std::int64_t size);
std::int64_t known_dim(const LayerImpl& layer, const Shape& shape, int axis);
/// Elements behind the batch, all known.
std::int64_t sample_elements(const LayerImpl& layer, const Shape& shape);
/// To `shape`, whose first dimension follows.
Output batched_reshape(const Scope& s, Output x, const Shape& shape);

/// The workspace's, as configs have it.
std::string data_format(const LayerImpl& layer);
/// Images as [N,C,H,W], whatever the workspace's layout is, and back.
Output channels_first(const CallContext& c, const LayerImpl& layer, Output images);
Output as_data_format(const CallContext& c, const LayerImpl& layer, Output images);

template <typename Options>
void write_kernel_options(Json& config, const Options& options, const char* kernel = "kernel") {
  const std::string name = kernel;
  config["activation"] = activation_name(options.activation);
  config["use_bias"] = options.use_bias;
  config[name + "_initializer"] = to_config(options.kernel_initializer);
  config["bias_initializer"] = to_config(options.bias_initializer);
  config[name + "_regularizer"] = to_config(options.kernel_regularizer);
  config["bias_regularizer"] = to_config(options.bias_regularizer);
  config["activity_regularizer"] = to_config(options.activity_regularizer);
  config[name + "_constraint"] = to_config(options.kernel_constraint);
  config["bias_constraint"] = to_config(options.bias_constraint);
}

template <typename Options>
Options kernel_options_from(const Json& config, Options options, const char* kernel = "kernel") {
  const std::string name = kernel;
  options.activation = value_from<std::string>(config, "activation", "");
  options.use_bias = value_from(config, "use_bias", true);
  options.kernel_initializer = initializer_from(config, (name + "_initializer").c_str(), "glorot_uniform");
  options.bias_initializer = initializer_from(config, "bias_initializer", "zeros");
  options.kernel_regularizer = regularizer_from(config, (name + "_regularizer").c_str());
  options.bias_regularizer = regularizer_from(config, "bias_regularizer");
  options.activity_regularizer = regularizer_from(config, "activity_regularizer");
  options.kernel_constraint = constraint_from(config, (name + "_constraint").c_str());
  options.bias_constraint = constraint_from(config, "bias_constraint");
  return options;
}

}  // namespace kolo::keras::detail
