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

/// What Dense and the convolutions have in common; `kernel` is "kernel", or "depthwise".
template <typename Options, typename Visit>
void visit_kernel_fields(Options& options, const std::string& kernel, const Visit& visit) {
  visit("activation", options.activation);
  visit("use_bias", options.use_bias);
  visit(kernel + "_initializer", options.kernel_initializer);
  visit("bias_initializer", options.bias_initializer);
  visit(kernel + "_regularizer", options.kernel_regularizer);
  visit("bias_regularizer", options.bias_regularizer);
  visit("activity_regularizer", options.activity_regularizer);
  visit(kernel + "_constraint", options.kernel_constraint);
  visit("bias_constraint", options.bias_constraint);
}

template <typename Options>
void write_kernel_options(Json& config, const Options& options, const char* kernel = "kernel") {
  visit_kernel_fields(options, kernel, WriteField{config});
  config["activation"] = activation_name(options.activation);
}

/// A layer of class Kind that has no arguments of its own.
template <typename Kind>
Layer layer_from(const Json& config) {
  return Kind(with_common(config, LayerOptions{}));
}

}  // namespace kolo::keras::detail
