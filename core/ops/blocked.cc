#include <kolo/core/ops/blocked.h>

#include <cstdint>
#include <vector>

#include <kolo/core/graph/op_schema.h>

namespace kolo {
namespace {

// The pass makes nodes of shapes that are known and fit.
void given_shape(ShapeContext& c) { c.set_output(0, c.attr<Shape>("shape")); }

OpSchema blocked(const char* name) { return OpSchema(name).required_attr("block", 0).made_by_pass(); }

const RegisterOp reorders[] = {
    blocked(kToBlockedOp).input("x", {DType::f32}).output("y"),
    blocked(kToRowMajorOp).input("x", {DType::f32}).output("y"),
};

OpSchema convolution(const char* name) {
  return OpSchema(name)
      .required_attr("strides", std::vector<std::int64_t>{})
      .required_attr("padding", "SAME")
      .required_attr("groups", 1)
      .required_attr("images_block", 0)
      .required_attr("results_block", 0)
      .required_attr("shape", Shape())
      .output("y")
      .shape(given_shape)
      .made_by_pass();
}

const RegisterOp convolutions[] = {
    convolution(kBlockedConv2dOp).input("images", {DType::f32}).input("weights", "images"),
    convolution(kBlockedConv2dImagesOp).input("weights", {DType::f32}).input("dy", "weights"),
    convolution(kBlockedConv2dWeightsOp).input("images", {DType::f32}).input("dy", "images"),
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
        .input("images", {DType::f32})
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

void statistics_like_scale(ShapeContext& c) {
  c.set_output(0, c.input(0));
  for (int i = 1; i < static_cast<int>(c.outputs().size()); ++i) c.set_output(i, c.input(1));
}

const RegisterOp normalizations[] = {
    blocked(kBlockedBatchNormOp)
        .input("x", {DType::f32})
        .input("scale", "x")
        .input("offset", "x")
        .input("moving_mean", "x")
        .input("moving_variance", "x")
        .variadic("added", {DType::f32})
        .required_attr("epsilon", 0.0)
        .required_attr("momentum", 0.0)
        .attr("relu", false)
        .output("y")
        .output("mean")
        .output("variance")
        .output("new_moving_mean")
        .output("new_moving_variance")
        .shape(statistics_like_scale)
        .in_place(0)
        .in_place(5),
    blocked(kBlockedBatchNormGradOp)
        .input("x", {DType::f32})
        .input("scale", "x")
        .input("mean", "x")
        .input("variance", "x")
        .variadic("dy", {DType::f32})
        .required_attr("epsilon", 0.0)
        .attr("relu", false)
        .attr("added", 0)
        .output("dx")
        .output("dscale")
        .output("doffset")
        .output("dadded", "added")
        .shape([](ShapeContext& c) {
          statistics_like_scale(c);
          if (c.outputs().size() > 3) c.set_output(3, c.input(0));
        })
        .in_place(4),
    blocked(kBlockedBatchNormInferenceOp)
        .input("x", {DType::f32})
        .input("scale", "x")
        .input("offset", "x")
        .input("mean", "x")
        .input("variance", "x")
        .required_attr("epsilon", 0.0)
        .output("y")
        .in_place(0),
};

const RegisterOp bias_ops[] = {
    blocked(kBlockedBiasAddOp).input("x", {DType::f32}).input("bias", "x").output("y").in_place(0),
    blocked(kBlockedBiasAddGradOp).input("dy", {DType::f32}).output("dbias").shape([](ShapeContext& c) {
      c.set_output(0, {c.input(0).dim(1)});
    }),
};

}  // namespace
}  // namespace kolo
