// Ops on images [N,C,H,W] f32 whose elements lie in blocked order, as convolutions like them best: n, block
// of channels, row, column, channel within the block. C is a multiple of the block, so that such a tensor has
// as many bytes as a row-major one: the order is a matter between nodes, shapes and memory plans do not know
// of it. The layout pass alone makes nodes of them, out of the ops that are named without "Blocked".
#pragma once

#include <cstdint>

namespace kolo {

// Attribute "block" of all: the channels of a block, or kChannelsLast. Those of which it is said have
// "shape", that of output 0. "type", where there is one, is that of output 0: f32, or bf16 where a pass
// narrows images (pipeline.h, narrow_images), whatever is read.

/// All channels are one block: the order n, row, column, channel.
inline constexpr std::int64_t kChannelsLast = -1;

/// (x) row-major → blocked, with "type"; and back, to f32.
inline constexpr char kToBlockedOp[] = "ToBlocked";
inline constexpr char kToRowMajorOp[] = "ToRowMajor";

/// (images, weights) → y; (weights, dy) → dimages; (images, dy) → dweights. Weights are row-major. Instead of
/// "block": "images_block" and "results_block", 0 where that side is row-major. With "shape" and "type". The
/// gradient of images takes (added, y) more, or `added` alone: it is added, and then the sum counts where y >
/// 0.
inline constexpr char kBlockedConv2dOp[] = "BlockedConv2D";
inline constexpr char kBlockedConv2dImagesOp[] = "BlockedConv2DBackpropInput";
inline constexpr char kBlockedConv2dWeightsOp[] = "BlockedConv2DBackpropFilter";

/// (images) → y, cells, which lie in the order of y; (cells, dy) → dimages. With "shape".
inline constexpr char kBlockedMaxPoolOp[] = "BlockedMaxPool";
inline constexpr char kBlockedMaxPoolGradOp[] = "BlockedMaxPoolGrad";
/// (images) → y; (dy) → dimages. With "shape".
inline constexpr char kBlockedAvgPoolOp[] = "BlockedAvgPool";
inline constexpr char kBlockedAvgPoolGradOp[] = "BlockedAvgPoolGrad";

/// (images) → y. Pad of rows and columns alone, with "shape"; and
/// StridedSlice that takes all images and channels, which the gradient of that is, with its attributes and
/// "shape".
inline constexpr char kBlockedPadOp[] = "BlockedPad";
inline constexpr char kBlockedSliceOp[] = "BlockedSlice";

/// Inputs and outputs of BatchNorm. An input behind those, like x, is added to y; then, with "relu", y is
/// rectified.
inline constexpr char kBlockedBatchNormOp[] = "BlockedBatchNorm";
/// (x, scale, mean, variance, dy …) → dx, dscale, doffset: the gradient of y is the sum of all dy. With
/// "relu" the last input is y, and the gradient counts where y > 0; with "relu_of_x" it is the offset, in
/// f32, and the gradient counts where BlockedBatchNorm makes a number > 0 of x. "added", 0 or 1: so many
/// outputs more, for what counts of the gradient.
inline constexpr char kBlockedBatchNormGradOp[] = "BlockedBatchNormGrad";
/// Inputs and output of BatchNormInference; what is added, and "relu", as in kBlockedBatchNormOp.
inline constexpr char kBlockedBatchNormInferenceOp[] = "BlockedBatchNormInference";

/// (x, bias) → y; (dy) → dbias
inline constexpr char kBlockedBiasAddOp[] = "BlockedBiasAdd";
inline constexpr char kBlockedBiasAddGradOp[] = "BlockedBiasAddGrad";

}  // namespace kolo
