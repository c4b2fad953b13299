// Layers of images: convolutions, pooling, other sizes. Images are [N,C,H,W], or [N,H,W,C] in a workspace of
// "channels_last"; kernels are stored alike in both. All constructors throw InvalidArgumentError for numbers
// out of range and for a padding other than "valid" and "same"; calls for images that do not fit.
#pragma once

#include <string>

#include <kolo/models/keras/core_layers.h>

namespace kolo::keras {

/// As Keras' Conv2D takes them. Sizes and strides are pixels.
struct Conv2DOptions {
  Pair strides = 1;
  std::string padding = "valid";
  std::string activation = {};
  bool use_bias = true;
  Initializer kernel_initializer = "glorot_uniform";
  Initializer bias_initializer = "zeros";
  Regularizer kernel_regularizer = {};
  Regularizer bias_regularizer = {};
  Regularizer activity_regularizer = {};
  Constraint kernel_constraint = {};
  Constraint bias_constraint = {};
  std::string name = {};
  bool trainable = true;
  Shape input_shape = Shape::unknown_rank();
  std::string dtype = {};
};
/// Weights: kernel [filters, C, kh, kw], bias.
class Conv2D : public Layer {
 public:
  Conv2D(std::int64_t filters, Pair kernel_size, Conv2DOptions options = {});
};

/// Larger images: same H · s, valid H · s + max(kh − s, 0). Weights: kernel [C, filters, kh, kw], bias.
class Conv2DTranspose : public Layer {
 public:
  Conv2DTranspose(std::int64_t filters, Pair kernel_size, Conv2DOptions options = {});
};

/// As Keras' DepthwiseConv2D takes them.
struct DepthwiseConv2DOptions {
  Pair strides = 1;
  std::string padding = "valid";
  std::int64_t depth_multiplier = 1;
  std::string activation = {};
  bool use_bias = true;
  Initializer kernel_initializer = "glorot_uniform";  // of depthwise_kernel, as the two below
  Initializer bias_initializer = "zeros";
  Regularizer kernel_regularizer = {};
  Regularizer bias_regularizer = {};
  Regularizer activity_regularizer = {};
  Constraint kernel_constraint = {};
  Constraint bias_constraint = {};
  std::string name = {};
  bool trainable = true;
  Shape input_shape = Shape::unknown_rank();
  std::string dtype = {};
};
/// Each channel with depth_multiplier filters of its own. Weights: depthwise_kernel [C, m, kh, kw], bias.
class DepthwiseConv2D : public Layer {
 public:
  explicit DepthwiseConv2D(Pair kernel_size, DepthwiseConv2DOptions options = {});
};

/// Of all poolings over a window. Sizes and strides are pixels.
struct PoolingOptions {
  Pair strides = 0;  // 0: as pool_size
  std::string padding = "valid";
  std::string name = {};
  bool trainable = true;
  Shape input_shape = Shape::unknown_rank();
  std::string dtype = {};
};
/// The largest value under a window, by channel.
class MaxPooling2D : public Layer {
 public:
  explicit MaxPooling2D(Pair pool_size = 2, const PoolingOptions& options = {});
};
/// Of the elements of the image alone, not of padding.
class AveragePooling2D : public Layer {
 public:
  explicit AveragePooling2D(Pair pool_size = 2, const PoolingOptions& options = {});
};
/// Of a whole image: (C).
class GlobalMaxPooling2D : public Layer {
 public:
  explicit GlobalMaxPooling2D(const LayerOptions& options = {});
};
/// The mean of each channel: [N, C].
class GlobalAveragePooling2D : public Layer {
 public:
  explicit GlobalAveragePooling2D(const LayerOptions& options = {});
};

/// As Keras' UpSampling2D takes them.
struct UpSampling2DOptions {
  std::string interpolation = "nearest";  // or "bilinear"
  std::string name = {};
  bool trainable = true;
  Shape input_shape = Shape::unknown_rank();
  std::string dtype = {};
};
/// Height and width must be known.
class UpSampling2D : public Layer {
 public:
  explicit UpSampling2D(Pair size = 2, const UpSampling2DOptions& options = {});
};

/// Rows above and below, columns left and right.
struct Borders {
  Borders(std::int64_t all) : Borders(all, all) {}
  Borders(std::int64_t rows, std::int64_t cols) : Borders(rows, rows, cols, cols) {}
  Borders(std::int64_t of_top, std::int64_t of_bottom, std::int64_t of_left, std::int64_t of_right)
      : top(of_top), bottom(of_bottom), left(of_left), right(of_right) {}
  std::int64_t top, bottom, left, right;
};
/// Zeros around each image; padding in pixels.
class ZeroPadding2D : public Layer {
 public:
  explicit ZeroPadding2D(Borders padding = 1, const LayerOptions& options = {});
};
/// Images without their edges; cropping in pixels.
class Cropping2D : public Layer {
 public:
  explicit Cropping2D(Borders cropping = 0, const LayerOptions& options = {});
};

}  // namespace kolo::keras
