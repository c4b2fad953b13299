// Activations and what acts in training only: layers without weights, and PReLU.
#include <cmath>
#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/core/ops/activations.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/ops/random.h>
#include <kolo/models/keras/core_layers.h>
#include <kolo/models/keras/layer_internal.h>
#include <kolo/models/keras/layer_parts_internal.h>

namespace kolo::keras {
namespace {

using detail::CallContext;
using detail::common_of;
using detail::Json;
using detail::LayerImpl;
using detail::RegisterLayer;

// A function of one tensor and the arguments in `config`.
class FunctionImpl final : public LayerImpl {
 public:
  using Function = std::function<Output(const Scope& s, Output x)>;
  FunctionImpl(const char* class_name, const LayerOptions& options, Json config, Function function)
      : LayerImpl(class_name, common_of(options)),
        config_(std::move(config)),
        function_(std::move(function)) {}
  Json config() const override { return config_; }

 protected:
  Outputs compute(const CallContext& c, const Outputs& inputs) override {
    return {function_(c.scope, inputs[0])};
  }

 private:
  Json config_;
  Function function_;
};

Output number(const Scope& s, const Output& like, double value) { return fill(s, like.dtype(), {}, value); }

Output clipped_relu(const Scope& s, Output x, const ReLUOptions& options) {
  const Output threshold = number(s, x, options.threshold);
  Output above = x;
  if (options.max_value >= 0) above = minimum(s, x, number(s, x, options.max_value));
  const Output below = mul(s, sub(s, x, threshold), number(s, x, options.negative_slope));
  return select(s, greater_equal(s, x, threshold), above, below);
}

LayerOptions common_part(const ReLUOptions& o) {
  return {.name = o.name, .trainable = o.trainable, .input_shape = o.input_shape, .dtype = o.dtype};
}

void check_rate(const char* layer, double rate) {
  if (!(rate >= 0 && rate < 1))
    throw InvalidArgumentError("{}: the rate is {}; it must lie in [0, 1)", layer, rate);
}

// The noise is an op on ones, so that its inference form leaves x alone.
Output noise_times(const Scope& s, Output x, double stddev) {
  return mul(s, x, gaussian_noise(s, ones_like(s, x), stddev));
}

class PReLUImpl final : public LayerImpl {
 public:
  explicit PReLUImpl(const LayerOptions& options) : LayerImpl("PReLU", common_of(options)) {}

 protected:
  void build(const std::vector<Shape>& inputs) override {
    detail::sample_elements(*this, inputs[0]);
    const auto& dims = inputs[0].dims();
    alpha_ = add_weight("alpha", Shape(std::vector<std::int64_t>(dims.begin() + 1, dims.end())), "zeros", {});
  }
  Outputs compute(const CallContext& c, const Outputs& inputs) override {
    const Output negative = mul(c.scope, neg(c.scope, relu(c.scope, neg(c.scope, inputs[0]))), alpha_);
    return {add(c.scope, relu(c.scope, inputs[0]), negative)};
  }

 private:
  Variable alpha_;
};

const RegisterLayer activation_layers[] = {
    {"Activation",
     [](const Json& c) -> Layer {
       return Activation(c.at("activation"), detail::with_common(c, LayerOptions{}));
     }},
    {"Softmax",
     [](const Json& c) -> Layer {
       return Softmax(detail::value_from(c, "axis", -1), detail::with_common(c, LayerOptions{}));
     }},
    {"ReLU",
     [](const Json& c) -> Layer {
       auto options = detail::with_common(c, ReLUOptions{});
       const detail::ReadField read{c};
       read("max_value", options.max_value);
       read("negative_slope", options.negative_slope);
       read("threshold", options.threshold);
       return ReLU(options);
     }},
    {"LeakyReLU",
     [](const Json& c) -> Layer {
       return LeakyReLU(detail::value_from(c, "alpha", 0.3), detail::with_common(c, LayerOptions{}));
     }},
    {"ELU",
     [](const Json& c) -> Layer {
       return ELU(detail::value_from(c, "alpha", 1.0), detail::with_common(c, LayerOptions{}));
     }},
    {"PReLU", detail::layer_from<PReLU>},
    {"GaussianNoise",
     [](const Json& c) -> Layer {
       return GaussianNoise(c.at("stddev"), detail::with_common(c, LayerOptions{}));
     }},
    {"GaussianDropout",
     [](const Json& c) -> Layer {
       return GaussianDropout(c.at("rate"), detail::with_common(c, LayerOptions{}));
     }},
    {"Dropout",
     [](const Json& c) -> Layer { return Dropout(c.at("rate"), detail::with_common(c, LayerOptions{})); }}};

}  // namespace

Activation::Activation(const std::string& activation, const LayerOptions& options)
    : Layer(std::make_shared<FunctionImpl>(
          "Activation", options, Json{{"activation", detail::activation_name(activation)}},
          [activation](const Scope& s, Output x) { return detail::activate(s, activation, x); })) {
  detail::check_activation(activation);
}

Softmax::Softmax(int axis, const LayerOptions& options)
    : Layer(
          std::make_shared<FunctionImpl>("Softmax", options, Json{{"axis", axis}},
                                         [axis](const Scope& s, Output x) { return softmax(s, x, axis); })) {}

ReLU::ReLU(const ReLUOptions& options)
    : Layer(std::make_shared<FunctionImpl>(
          "ReLU", common_part(options),
          Json{{"max_value", options.max_value < 0 ? Json(nullptr) : Json(options.max_value)},
               {"negative_slope", options.negative_slope},
               {"threshold", options.threshold}},
          [options](const Scope& s, Output x) { return clipped_relu(s, x, options); })) {}

LeakyReLU::LeakyReLU(double alpha, const LayerOptions& options)
    : Layer(std::make_shared<FunctionImpl>(
          "LeakyReLU", options, Json{{"alpha", alpha}},
          [alpha](const Scope& s, Output x) { return leaky_relu(s, x, alpha); })) {}

ELU::ELU(double alpha, const LayerOptions& options)
    : Layer(std::make_shared<FunctionImpl>("ELU", options, Json{{"alpha", alpha}},
                                           [alpha](const Scope& s, Output x) { return elu(s, x, alpha); })) {}

PReLU::PReLU(const LayerOptions& options) : Layer(std::make_shared<PReLUImpl>(options)) {}

Dropout::Dropout(double rate, const LayerOptions& options)
    : Layer(
          std::make_shared<FunctionImpl>("Dropout", options, Json{{"rate", rate}},
                                         [rate](const Scope& s, Output x) { return dropout(s, x, rate); })) {
  check_rate("Dropout", rate);
}

GaussianNoise::GaussianNoise(double stddev, const LayerOptions& options)
    : Layer(std::make_shared<FunctionImpl>(
          "GaussianNoise", options, Json{{"stddev", stddev}},
          [stddev](const Scope& s, Output x) { return gaussian_noise(s, x, stddev); })) {
  if (!(stddev >= 0 && std::isfinite(stddev)))
    throw InvalidArgumentError("GaussianNoise: stddev is {}; it must be finite, not negative", stddev);
}

GaussianDropout::GaussianDropout(double rate, const LayerOptions& options)
    : Layer(std::make_shared<FunctionImpl>("GaussianDropout", options, Json{{"rate", rate}},
                                           [stddev = std::sqrt(rate / (1 - rate))](const Scope& s, Output x) {
                                             return noise_times(s, x, stddev);
                                           })) {
  check_rate("GaussianDropout", rate);
}

}  // namespace kolo::keras
