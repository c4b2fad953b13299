#include <kolo/models/keras/core_layers.h>

#include <algorithm>
#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/models/keras/layer_internal.h>
#include <kolo/models/keras/layer_parts_internal.h>

namespace kolo::keras {
namespace detail {

class OwnLayerImpl final : public LayerImpl {
 public:
  OwnLayerImpl(const std::string& class_name, std::shared_ptr<OwnLayer> own, const LayerOptions& options)
      : LayerImpl(class_name, common_of(options)), own_(std::move(own)) {
    if (own_->impl_ != nullptr)
      throw InvalidArgumentError("{}: this object is the layer \"{}\" already; make another one", class_name,
                                 own_->impl_->name());
    own_->impl_ = this;
  }
  ~OwnLayerImpl() override { own_->impl_ = nullptr; }
  Json config() const override {
    const std::string text = own_->config();
    Json config = Json::parse(text, nullptr, false);
    if (config.is_object()) return config;
    throw InvalidArgumentError("{} \"{}\": config() gives {}; it must be a JSON object", class_name(), name(),
                               text);
  }

  Variable add(const std::string& name, const Shape& shape, const OwnWeightOptions& options) {
    if (!shape.is_fully_known())
      throw InvalidArgumentError("{} \"{}\": the weight \"{}\" has shape {}, which must be fully known",
                                 class_name(), this->name(), name, shape_text(shape));
    if (std::any_of(own_weights_.begin(), own_weights_.end(),
                    [&](const Weight& weight) { return weight.name == name; }))
      throw InvalidArgumentError("{} \"{}\" has a weight \"{}\" already", class_name(), this->name(), name);
    return add_weight(name, shape, options.initializer,
                      {.fans = fans_of(shape),
                       .regularizer = options.regularizer,
                       .constraint = options.constraint,
                       .norm_axes = {0},
                       .trainable = options.trainable});
  }

 protected:
  void build(const std::vector<Shape>& inputs) override { own_->build(inputs); }
  Outputs compute(const CallContext& c, const Outputs& inputs) override {
    return own_->compute(c.scope, inputs);
  }

 private:
  // As Keras counts them: the last two dimensions are input and output, those before them a window.
  static Fans fans_of(const Shape& shape) {
    if (shape.rank() == 0) return {1, 1};
    double window = 1;
    for (int i = 0; i + 2 < shape.rank(); ++i) window *= static_cast<double>(shape.dim(i));
    const auto last = static_cast<double>(shape.dim(-1));
    const double before = shape.rank() == 1 ? last : static_cast<double>(shape.dim(-2));
    return {window * before, window * last};
  }

  std::shared_ptr<OwnLayer> own_;
};

}  // namespace detail

Variable OwnLayer::add_weight(const std::string& name, const Shape& shape, const OwnWeightOptions& options) {
  if (impl_ == nullptr)
    throw FailedPreconditionError("add_weight \"{}\": own_layer() has not made a layer of this object yet",
                                  name);
  return impl_->add(name, shape, options);
}

Layer own_layer(const std::string& class_name, std::shared_ptr<OwnLayer> layer, const LayerOptions& options) {
  if (layer == nullptr) throw InvalidArgumentError("own_layer {}: there is no layer", class_name);
  return Layer(std::make_shared<detail::OwnLayerImpl>(class_name, std::move(layer), options));
}

LayerOptions layer_options_from(const std::string& config) {
  const detail::Json json = detail::Json::parse(config, nullptr, false);
  if (!json.is_object())
    throw InvalidArgumentError("a layer's config is a JSON object, and this is none: {}", config);
  return detail::with_common(json, LayerOptions{});
}

}  // namespace kolo::keras
