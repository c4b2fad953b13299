#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/core/ops/convolution.h>
#include <kolo/core/ops/linalg.h>
#include <kolo/models/keras/image_layers.h>
#include <kolo/models/keras/layer_internal.h>
#include <kolo/models/keras/layer_parts_internal.h>

namespace kolo::keras {
namespace {

using detail::CallContext;
using detail::common_of;
using detail::Json;
using detail::LayerImpl;
using detail::RegisterLayer;

double window(const Pair& kernel) { return static_cast<double>(kernel.rows * kernel.cols); }

// What the three kinds have in common; a kind says which kernel it has and how it is applied.
template <typename Options>
class ConvolutionImpl : public LayerImpl {
 public:
  ConvolutionImpl(const char* class_name, Pair kernel_size, Options options)
      : LayerImpl(class_name, common_of(options)), kernel_size_(kernel_size), options_(std::move(options)) {
    detail::check_activation(options_.activation);
    detail::check_padding(class_name, options_.padding);
    for (const std::int64_t size : {kernel_size.rows, kernel_size.cols})
      detail::require_positive(class_name, "kernel_size", size);
    for (const std::int64_t stride : {options_.strides.rows, options_.strides.cols})
      detail::require_positive(class_name, "strides", stride);
  }
  Regularizer activity_regularizer() const override { return options_.activity_regularizer; }

 protected:
  void write(Json& config, const char* kernel) const {
    config["kernel_size"] = kernel_size_;
    config["strides"] = options_.strides;
    config["padding"] = options_.padding;
    config["data_format"] = detail::data_format(*this);
    detail::write_kernel_options(config, options_, kernel);
  }
  std::int64_t channels(const std::vector<Shape>& inputs) const {
    detail::require_rank(*this, inputs[0], 4);
    return detail::known_dim(*this, inputs[0], workspace().channels_last() ? 3 : 1);
  }
  void make_weights(const char* name, const Shape& kernel, const Fans& fans, std::int64_t results,
                    std::vector<std::int64_t> norm_axes) {
    kernel_ = add_weight(name, kernel, options_.kernel_initializer,
                         {.fans = fans,
                          .regularizer = options_.kernel_regularizer,
                          .constraint = options_.kernel_constraint,
                          .norm_axes = std::move(norm_axes)});
    if (options_.use_bias)
      bias_ = add_weight("bias", {results}, options_.bias_initializer,
                         {.regularizer = options_.bias_regularizer, .constraint = options_.bias_constraint});
  }
  virtual Output convolved(const Scope& s, Output images) = 0;
  Outputs compute(const CallContext& c, const Outputs& inputs) override {
    Output y = convolved(c.scope, detail::channels_first(c, *this, inputs[0]));
    if (bias_) y = bias_add(c.scope, y, bias_);
    const int channel_axis = workspace().channels_last() ? 3 : 1;
    y = detail::as_data_format(c, *this, y);
    return {detail::activate(c.scope, options_.activation, y, channel_axis)};
  }
  Padding padding() const { return options_.padding == "same" ? Padding::same : Padding::valid; }
  RowsCols strides() const { return {options_.strides.rows, options_.strides.cols}; }

  Pair kernel_size_;
  Options options_;
  Variable kernel_, bias_;
};

class Conv2DImpl final : public ConvolutionImpl<Conv2DOptions> {
 public:
  Conv2DImpl(std::int64_t filters, Pair kernel_size, Conv2DOptions options)
      : ConvolutionImpl("Conv2D", kernel_size, std::move(options)), filters_(filters) {
    detail::require_positive("Conv2D", "filters", filters);
  }
  Json config() const override {
    Json config = {{"filters", filters_}};
    write(config, "kernel");
    return config;
  }

 protected:
  void build(const std::vector<Shape>& inputs) override {
    const std::int64_t c = channels(inputs);
    const double in = static_cast<double>(c), out = static_cast<double>(filters_), n = window(kernel_size_);
    make_weights("kernel", {filters_, c, kernel_size_.rows, kernel_size_.cols}, {in * n, out * n}, filters_,
                 {1, 2, 3});
  }
  Output convolved(const Scope& s, Output images) override {
    return conv2d(s, images, kernel_, {.strides = strides(), .padding = padding()});
  }

 private:
  std::int64_t filters_;
};

class Conv2DTransposeImpl final : public ConvolutionImpl<Conv2DOptions> {
 public:
  Conv2DTransposeImpl(std::int64_t filters, Pair kernel_size, Conv2DOptions options)
      : ConvolutionImpl("Conv2DTranspose", kernel_size, std::move(options)), filters_(filters) {
    detail::require_positive("Conv2DTranspose", "filters", filters);
  }
  Json config() const override {
    Json config = {{"filters", filters_}};
    write(config, "kernel");
    return config;
  }

 protected:
  void build(const std::vector<Shape>& inputs) override {
    const std::int64_t c = channels(inputs);
    const double in = static_cast<double>(filters_), out = static_cast<double>(c), n = window(kernel_size_);
    make_weights("kernel", {c, filters_, kernel_size_.rows, kernel_size_.cols}, {in * n, out * n}, filters_,
                 {0, 2, 3});
  }
  Output convolved(const Scope& s, Output images) override {
    return conv2d_transpose(s, images, kernel_, {.strides = strides(), .padding = padding()});
  }

 private:
  std::int64_t filters_;
};

class DepthwiseConv2DImpl final : public ConvolutionImpl<DepthwiseConv2DOptions> {
 public:
  DepthwiseConv2DImpl(Pair kernel_size, DepthwiseConv2DOptions options)
      : ConvolutionImpl("DepthwiseConv2D", kernel_size, std::move(options)) {
    detail::require_positive("DepthwiseConv2D", "depth_multiplier", options_.depth_multiplier);
  }
  Json config() const override {
    Json config = {{"depth_multiplier", options_.depth_multiplier}};
    write(config, "depthwise");
    return config;
  }

 protected:
  void build(const std::vector<Shape>& inputs) override {
    const std::int64_t c = channels(inputs), m = options_.depth_multiplier;
    const double n = window(kernel_size_);
    make_weights("depthwise_kernel", {c, m, kernel_size_.rows, kernel_size_.cols},
                 {static_cast<double>(c) * n, static_cast<double>(m) * n}, c * m, {2, 3});
  }
  Output convolved(const Scope& s, Output images) override {
    return depthwise_conv2d(s, images, kernel_, {.strides = strides(), .padding = padding()});
  }
};

template <typename Options>
Options options_from(const Json& config, const char* kernel = "kernel") {
  auto options = detail::with_common(config, Options{});
  const detail::ReadField read{config};
  read("strides", options.strides);
  read("padding", options.padding);
  detail::visit_kernel_fields(options, kernel, read);
  return options;
}

const RegisterLayer convolution_layers[] = {
    {"Conv2D",
     [](const Json& c) -> Layer {
       return Conv2D(c.at("filters"), detail::value_from<Pair>(c, "kernel_size", 1),
                     options_from<Conv2DOptions>(c));
     }},
    {"Conv2DTranspose",
     [](const Json& c) -> Layer {
       return Conv2DTranspose(c.at("filters"), detail::value_from<Pair>(c, "kernel_size", 1),
                              options_from<Conv2DOptions>(c));
     }},
    {"DepthwiseConv2D", [](const Json& c) -> Layer {
       auto options = options_from<DepthwiseConv2DOptions>(c, "depthwise");
       detail::ReadField{c}("depth_multiplier", options.depth_multiplier);
       return DepthwiseConv2D(detail::value_from<Pair>(c, "kernel_size", 1), options);
     }}};

}  // namespace

Conv2D::Conv2D(std::int64_t filters, Pair kernel_size, Conv2DOptions options)
    : Layer(std::make_shared<Conv2DImpl>(filters, kernel_size, std::move(options))) {}
Conv2DTranspose::Conv2DTranspose(std::int64_t filters, Pair kernel_size, Conv2DOptions options)
    : Layer(std::make_shared<Conv2DTransposeImpl>(filters, kernel_size, std::move(options))) {}
DepthwiseConv2D::DepthwiseConv2D(Pair kernel_size, DepthwiseConv2DOptions options)
    : Layer(std::make_shared<DepthwiseConv2DImpl>(kernel_size, std::move(options))) {}

}  // namespace kolo::keras
