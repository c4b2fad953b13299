#include <kolo/models/keras/normalization_layers.h>

#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/normalization.h>
#include <kolo/core/ops/shapes.h>
#include <kolo/models/keras/layer_internal.h>
#include <kolo/models/keras/layer_parts_internal.h>

namespace kolo::keras {
namespace {

using detail::CallContext;
using detail::common_of;
using detail::Json;
using detail::LayerImpl;
using detail::RegisterLayer;

template <typename Options, typename Visit>
void visit_fields(Options& options, const Visit& visit) {
  visit("momentum", options.momentum);
  visit("epsilon", options.epsilon);
  visit("center", options.center);
  visit("scale", options.scale);
  visit("beta_initializer", options.beta_initializer);
  visit("gamma_initializer", options.gamma_initializer);
  visit("moving_mean_initializer", options.moving_mean_initializer);
  visit("moving_variance_initializer", options.moving_variance_initializer);
  visit("beta_regularizer", options.beta_regularizer);
  visit("gamma_regularizer", options.gamma_regularizer);
  visit("beta_constraint", options.beta_constraint);
  visit("gamma_constraint", options.gamma_constraint);
}

class BatchNormalizationImpl final : public LayerImpl {
 public:
  explicit BatchNormalizationImpl(BatchNormalizationOptions options)
      : LayerImpl("BatchNormalization", common_of(options)), options_(std::move(options)) {
    if (!(options_.momentum >= 0 && options_.momentum <= 1) || options_.epsilon < 0)
      throw InvalidArgumentError(
          "BatchNormalization: momentum {} and epsilon {}; the first lies in [0, 1], the second is not "
          "negative",
          options_.momentum, options_.epsilon);
  }

  Json config() const override {
    const int axis = options_.axis ? *options_.axis : detail::data_format(*this) == "channels_last" ? -1 : 1;
    Json config = {{"axis", axis}};
    visit_fields(options_, detail::WriteField{config});
    return config;
  }

 protected:
  void build(const std::vector<Shape>& inputs) override {
    const Shape channels{detail::known_dim(*this, inputs[0], axis_in(inputs[0]))};
    if (options_.scale)
      gamma_ =
          add_weight("gamma", channels, options_.gamma_initializer,
                     {.regularizer = options_.gamma_regularizer, .constraint = options_.gamma_constraint});
    if (options_.center)
      beta_ = add_weight("beta", channels, options_.beta_initializer,
                         {.regularizer = options_.beta_regularizer, .constraint = options_.beta_constraint});
    mean_ = add_weight("moving_mean", channels, options_.moving_mean_initializer, {.trainable = false});
    variance_ =
        add_weight("moving_variance", channels, options_.moving_variance_initializer, {.trainable = false});
  }

  Outputs compute(const CallContext& c, const Outputs& inputs) override {
    const int rank = inputs[0].shape().rank(), axis = axis_in(inputs[0].shape());
    if (axis == 1) return {normalized(c, inputs[0])};
    std::vector<std::int64_t> there = {0, axis}, back(static_cast<std::size_t>(rank));
    for (int i = 1; i < rank; ++i)
      if (i != axis) there.push_back(i);
    for (std::size_t i = 0; i < there.size(); ++i)
      back[static_cast<std::size_t>(there[i])] = static_cast<int>(i);
    return {transpose(c.scope, normalized(c, transpose(c.scope, inputs[0], there)), back)};
  }

 private:
  int axis_in(const Shape& shape) const {
    if (shape.rank() < 2)
      throw InvalidArgumentError("the layer \"{}\" normalizes over a batch; its input is {}", name(),
                                 detail::shape_text(shape));
    if (!options_.axis) return workspace().channels_last() ? shape.rank() - 1 : 1;
    const int axis = *options_.axis < 0 ? *options_.axis + shape.rank() : *options_.axis;
    if (axis < 1 || axis >= shape.rank())
      throw InvalidArgumentError("the layer \"{}\": axis {} of {} cannot be normalized", name(),
                                 *options_.axis, detail::shape_text(shape));
    return axis;
  }

  Output normalized(const CallContext& c, Output x) {
    const Shape& channels = mean_.shape();
    const Output scale = gamma_ ? gamma_.read() : ones(c.scope, DType::f32, channels);
    const Output offset = beta_ ? beta_.read() : zeros(c.scope, DType::f32, channels);
    if (c.frozen) return batch_norm_inference(c.scope, x, scale, offset, mean_, variance_, options_.epsilon);
    const BatchNormResult result = batch_norm(c.scope, x, scale, offset, mean_, variance_,
                                              {.epsilon = options_.epsilon, .momentum = options_.momentum});
    if (c.record != nullptr) {
      c.record->add_average(mean_, result.moving_mean);
      c.record->add_average(variance_, result.moving_variance);
    }
    return result.y;
  }

  BatchNormalizationOptions options_;
  Variable gamma_, beta_, mean_, variance_;
};

class LayerNormalizationImpl final : public LayerImpl {
 public:
  explicit LayerNormalizationImpl(const LayerNormalizationOptions& options)
      : LayerImpl("LayerNormalization", common_of(options)), epsilon_(options.epsilon) {}
  Json config() const override { return {{"epsilon", epsilon_}}; }

 protected:
  void build(const std::vector<Shape>& inputs) override {
    const Shape row{detail::known_dim(*this, inputs[0], -1)};
    gamma_ = add_weight("gamma", row, "ones", {});
    beta_ = add_weight("beta", row, "zeros", {});
  }
  Outputs compute(const CallContext& c, const Outputs& inputs) override {
    return {layer_norm(c.scope, inputs[0], gamma_, beta_, epsilon_)};
  }

 private:
  double epsilon_;
  Variable gamma_, beta_;
};

Layer batch_normalization_from(const Json& config) {
  auto o = detail::with_common(config, BatchNormalizationOptions{});
  if (const auto axis = config.find("axis"); axis != config.end() && axis->is_number())
    o.axis = axis->get<int>();
  visit_fields(o, detail::ReadField{config});
  return BatchNormalization(o);
}

Layer layer_normalization_from(const Json& config) {
  auto options = detail::with_common(config, LayerNormalizationOptions{});
  detail::ReadField{config}("epsilon", options.epsilon);
  return LayerNormalization(options);
}

const RegisterLayer normalization_layers[] = {{"BatchNormalization", batch_normalization_from},
                                              {"LayerNormalization", layer_normalization_from}};

}  // namespace

BatchNormalization::BatchNormalization(BatchNormalizationOptions options)
    : Layer(std::make_shared<BatchNormalizationImpl>(std::move(options))) {}
LayerNormalization::LayerNormalization(const LayerNormalizationOptions& options)
    : Layer(std::make_shared<LayerNormalizationImpl>(options)) {}

}  // namespace kolo::keras
