// Images in another size: pooling, enlarging, borders.
#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/core/ops/pooling.h>
#include <kolo/core/ops/shapes.h>
#include <kolo/core/ops/slicing.h>
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

// A function of images in [N,C,H,W] and the arguments in `config`.
class ImageImpl final : public LayerImpl {
 public:
  using Function = std::function<Output(const Scope& s, Output images)>;
  template <typename Options>
  ImageImpl(const char* class_name, const Options& options, Json config, Function function)
      : LayerImpl(class_name, common_of(options)),
        config_(std::move(config)),
        function_(std::move(function)) {}
  Json config() const override {
    Json config = config_;
    config["data_format"] = detail::data_format(*this);
    return config;
  }

 protected:
  Outputs compute(const CallContext& c, const Outputs& inputs) override {
    const Output y = function_(c.scope, detail::channels_first(c, *this, inputs[0]));
    return {y.shape().rank() == 4 ? detail::as_data_format(c, *this, y) : y};
  }

 private:
  Json config_;
  Function function_;
};

using Pool = Output (*)(const Scope& s, Output images, PoolOptions options);

std::shared_ptr<LayerImpl> pooling(const char* class_name, Pool pool, const Pair& size,
                                   const PoolingOptions& options) {
  detail::check_padding(class_name, options.padding);
  const Pair strides = options.strides.rows == 0 ? size : options.strides;
  for (const std::int64_t number : {size.rows, size.cols, strides.rows, strides.cols})
    detail::require_positive(class_name, "pool_size or strides", number);
  const PoolOptions of_op{.window = {size.rows, size.cols},
                          .strides = {strides.rows, strides.cols},
                          .padding = options.padding == "same" ? Padding::same : Padding::valid};
  return std::make_shared<ImageImpl>(
      class_name, options, Json{{"pool_size", size}, {"padding", options.padding}, {"strides", strides}},
      [pool, of_op](const Scope& s, Output images) { return pool(s, images, of_op); });
}

Output enlarged(const Scope& s, Output images, const Pair& by, ResizeMethod method) {
  const Shape& shape = images.shape();
  if (shape.dim(2) < 0 || shape.dim(3) < 0)
    throw InvalidArgumentError("UpSampling2D: the images are {}; their size must be known", shape);
  return resize(s, images, {shape.dim(2) * by.rows, shape.dim(3) * by.cols}, method);
}

Json to_config(const Borders& b) {
  return Json::array({Json::array({b.top, b.bottom}), Json::array({b.left, b.right})});
}

Borders borders_from(const Json& config, const char* key) {
  const Json& value = config.at(key);
  if (value.is_number()) return {value.get<std::int64_t>()};
  if (value.at(0).is_number()) return {value.at(0).get<std::int64_t>(), value.at(1).get<std::int64_t>()};
  return {value.at(0).at(0), value.at(0).at(1), value.at(1).at(0), value.at(1).at(1)};
}

void check(const char* class_name, const Borders& b) {
  for (const std::int64_t number : {b.top, b.bottom, b.left, b.right})
    if (number < 0)
      throw InvalidArgumentError("{}: a border of {}; it must not be negative", class_name, number);
}

Output cropped(const Scope& s, Output images, const Borders& b) {
  const auto end = [](std::int64_t number) { return -number; };
  StridedSliceMasks masks{.begin = 3, .end = 3 | (b.bottom == 0 ? 4 : 0) | (b.right == 0 ? 8 : 0)};
  return strided_slice(s, images, {0, 0, b.top, b.left}, {0, 0, end(b.bottom), end(b.right)}, {}, masks);
}

PoolingOptions pooling_from(const Json& config) {
  auto options = detail::with_common(config, PoolingOptions{});
  detail::ReadField{config}("strides", options.strides);
  detail::ReadField{config}("padding", options.padding);
  return options;
}

const RegisterLayer pooling_layers[] = {
    {"MaxPooling2D",
     [](const Json& c) -> Layer {
       return MaxPooling2D(detail::value_from<Pair>(c, "pool_size", 2), pooling_from(c));
     }},
    {"AveragePooling2D",
     [](const Json& c) -> Layer {
       return AveragePooling2D(detail::value_from<Pair>(c, "pool_size", 2), pooling_from(c));
     }},
    {"GlobalMaxPooling2D", detail::layer_from<GlobalMaxPooling2D>},
    {"GlobalAveragePooling2D", detail::layer_from<GlobalAveragePooling2D>},
    {"UpSampling2D",
     [](const Json& c) -> Layer {
       auto options = detail::with_common(c, UpSampling2DOptions{});
       detail::ReadField{c}("interpolation", options.interpolation);
       return UpSampling2D(detail::value_from<Pair>(c, "size", 2), options);
     }},
    {"ZeroPadding2D",
     [](const Json& c) -> Layer {
       return ZeroPadding2D(borders_from(c, "padding"), detail::with_common(c, LayerOptions{}));
     }},
    {"Cropping2D", [](const Json& c) -> Layer {
       return Cropping2D(borders_from(c, "cropping"), detail::with_common(c, LayerOptions{}));
     }}};

}  // namespace

MaxPooling2D::MaxPooling2D(Pair pool_size, const PoolingOptions& options)
    : Layer(pooling("MaxPooling2D", max_pool, pool_size, options)) {}
AveragePooling2D::AveragePooling2D(Pair pool_size, const PoolingOptions& options)
    : Layer(pooling("AveragePooling2D", avg_pool, pool_size, options)) {}
GlobalMaxPooling2D::GlobalMaxPooling2D(const LayerOptions& options)
    : Layer(std::make_shared<ImageImpl>("GlobalMaxPooling2D", options, Json::object(), global_max_pool)) {}
GlobalAveragePooling2D::GlobalAveragePooling2D(const LayerOptions& options)
    : Layer(std::make_shared<ImageImpl>("GlobalAveragePooling2D", options, Json::object(), global_avg_pool)) {
}

UpSampling2D::UpSampling2D(Pair size, const UpSampling2DOptions& options)
    : Layer(std::make_shared<ImageImpl>(
          "UpSampling2D", options, Json{{"size", size}, {"interpolation", options.interpolation}},
          [size, bilinear = options.interpolation == "bilinear"](const Scope& s, Output images) {
            return enlarged(s, images, size, bilinear ? ResizeMethod::bilinear : ResizeMethod::nearest);
          })) {
  if (options.interpolation != "nearest" && options.interpolation != "bilinear")
    throw InvalidArgumentError(
        "UpSampling2D: interpolation argument should be one of \"nearest\" or \"bilinear\".");
}

ZeroPadding2D::ZeroPadding2D(Borders padding, const LayerOptions& options)
    : Layer(std::make_shared<ImageImpl>(
          "ZeroPadding2D", options, Json{{"padding", to_config(padding)}},
          [padding](const Scope& s, Output images) {
            return pad(s, images,
                       {{0, 0}, {0, 0}, {padding.top, padding.bottom}, {padding.left, padding.right}});
          })) {
  check("ZeroPadding2D", padding);
}

Cropping2D::Cropping2D(Borders cropping, const LayerOptions& options)
    : Layer(std::make_shared<ImageImpl>(
          "Cropping2D", options, Json{{"cropping", to_config(cropping)}},
          [cropping](const Scope& s, Output images) { return cropped(s, images, cropping); })) {
  check("Cropping2D", cropping);
}

}  // namespace kolo::keras
