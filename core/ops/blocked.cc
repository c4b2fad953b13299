#include <kolo/core/ops/blocked.h>

#include <cstdint>
#include <vector>

#include <kolo/core/graph/op_schema.h>

namespace kolo {
namespace {

// The pass makes nodes of shapes that are known and fit.
void given_shape(ShapeContext& c) { c.set_output(0, c.attr<Shape>("shape")); }

const std::vector<DType> kImages = {DType::f32, DType::bf16};

OpSchema blocked(const char* name) { return OpSchema(name).required_attr("block", 0).made_by_pass(); }

const RegisterOp reorders[] = {
    blocked(kToBlockedOp).input("x", {DType::f32}).attr("type", DType::f32).output("y", "type"),
    blocked(kToRowMajorOp).input("x", kImages).output("y", DType::f32),
};

OpSchema convolution(const char* name) {
  return OpSchema(name)
      .required_attr("strides", std::vector<std::int64_t>{})
      .required_attr("padding", "SAME")
      .required_attr("groups", 1)
      .required_attr("images_block", 0)
      .required_attr("results_block", 0)
      .required_attr("shape", Shape())
      .attr("type", DType::f32)
      .output("y", "type")
      .shape(given_shape)
      .made_by_pass();
}

const RegisterOp convolutions[] = {
    convolution(kBlockedConv2dOp).input("images", kImages).input("weights", {DType::f32}),
    convolution(kBlockedConv2dImagesOp)
        .input("weights", {DType::f32})
        .input("dy", kImages)
        .variadic("tail", {DType::f32})
        .in_place(2),
    convolution(kBlockedConv2dWeightsOp).input("images", kImages).input("dy", kImages),
};

OpSchema pooling(const char* name) {
  return blocked(name)
      .required_attr("window", std::vector<std::int64_t>{})
      .required_attr("strides", std::vector<std::int64_t>{})
      .required_attr("padding", "SAME")
      .required_attr("shape", Shape());
}

const RegisterOp poolings[] = {
    pooling(kBlockedMaxPoolOp)
        .input("images", kImages)
        .output("y")
        .output("cells", DType::u8)
        .shape([](ShapeContext& c) {
          given_shape(c);
          c.set_output(1, c.attr<Shape>("shape"));
        }),
    pooling(kBlockedMaxPoolGradOp)
        .input("cells", {DType::u8})
        .input("dy", {DType::f32})
        .output("dx", "dy")
        .shape(given_shape),
    pooling(kBlockedAvgPoolOp).input("images", {DType::f32}).output("y").shape(given_shape),
    pooling(kBlockedAvgPoolGradOp).input("dy", {DType::f32}).output("dx").shape(given_shape),
};

OpSchema part_or_whole(const char* name) {
  return blocked(name)
      .required_attr("shape", Shape())
      .input("images", kImages)
      .output("y")
      .shape(given_shape);
}

const std::vector<std::int64_t> kAxes;

const RegisterOp pads[] = {
    part_or_whole(kBlockedPadOp).required_attr("before", kAxes).required_attr("value", 0.0),
    part_or_whole(kBlockedSliceOp)
        .required_attr("begin", kAxes)
        .required_attr("end", kAxes)
        .required_attr("strides", kAxes)
        .required_attr("begin_mask", 0)
        .required_attr("end_mask", 0)
        .required_attr("ellipsis_mask", 0)
        .required_attr("new_axis_mask", 0)
        .required_attr("shrink_axis_mask", 0),
};

void statistics_like_scale(ShapeContext& c) {
  c.set_output(0, c.input(0));
  for (int i = 1; i < static_cast<int>(c.outputs().size()); ++i) c.set_output(i, c.input(1));
}

const RegisterOp normalizations[] = {
    blocked(kBlockedBatchNormOp)
        .input("x", kImages)
        .input("scale", {DType::f32})
        .input("offset", {DType::f32})
        .input("moving_mean", {DType::f32})
        .input("moving_variance", {DType::f32})
        .variadic("added", kImages)
        .required_attr("epsilon", 0.0)
        .required_attr("momentum", 0.0)
        .attr("relu", false)
        .output("y")
        .output("mean", DType::f32)
        .output("variance", DType::f32)
        .output("new_moving_mean", DType::f32)
        .output("new_moving_variance", DType::f32)
        .shape(statistics_like_scale)
        .in_place(0)
        .in_place(5),
    blocked(kBlockedBatchNormGradOp)
        .input("x", kImages)
        .input("scale", {DType::f32})
        .input("mean", {DType::f32})
        .input("variance", {DType::f32})
        .variadic("dy", kImages, true)
        .required_attr("epsilon", 0.0)
        .attr("relu", false)
        .attr("relu_of_x", false)
        .attr("added", 0)
        .output("dx")
        .output("dscale", DType::f32)
        .output("doffset", DType::f32)
        .output("dadded", "added")
        .shape([](ShapeContext& c) {
          statistics_like_scale(c);
          if (c.outputs().size() > 3) c.set_output(3, c.input(0));
        })
        .in_place(4),
    blocked(kBlockedBatchNormInferenceOp)
        .input("x", kImages)
        .input("scale", {DType::f32})
        .input("offset", {DType::f32})
        .input("mean", {DType::f32})
        .input("variance", {DType::f32})
        .variadic("added", kImages)
        .required_attr("epsilon", 0.0)
        .attr("relu", false)
        .output("y")
        .in_place(0)
        .in_place(5),
};

const RegisterOp bias_ops[] = {
    blocked(kBlockedBiasAddOp).input("x", {DType::f32}).input("bias", "x").output("y").in_place(0),
    blocked(kBlockedBiasAddGradOp).input("dy", {DType::f32}).output("dbias").shape([](ShapeContext& c) {
      c.set_output(0, {c.input(0).dim(1)});
    }),
};

}  // namespace
}  // namespace kolo
