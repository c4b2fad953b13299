#include <kolo/models/programs/recipe.h>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/ops/variables.h>
#include <kolo/optimizer/clipping.h>
#include <kolo/optimizer/distributed_optimizer.h>
#include <kolo/optimizer/moving_average.h>
#include <kolo/optimizer/registry.h>
#include <kolo/optimizer/schedules.h>

namespace kolo::models {
namespace {

Hyperparameter scheduled_rate(const Scope& s, const TrainOptions& options, std::int64_t last_step) {
  const double rate = *options.learning_rate;
  if (options.schedule == Schedule::constant && options.warmup == 0) return rate;
  const Output step = get_or_create_global_step(s).read();
  const auto steps = static_cast<double>(last_step);
  Output scheduled = constant(s, static_cast<float>(rate));
  if (options.schedule == Schedule::linear)
    scheduled = polynomial_decay(s, rate, step, {.decay_steps = steps, .end_learning_rate = 0});
  if (options.schedule == Schedule::cosine) scheduled = cosine_decay(s, rate, step, {.decay_steps = steps});
  if (options.schedule == Schedule::step)  // He et al., "Deep residual learning", 2015
    scheduled = piecewise_constant(s, step, std::vector{steps / 2 - 1, steps * 3 / 4 - 1},
                                   std::vector{rate, rate / 10, rate / 100});
  if (options.warmup == 0) return scheduled;
  const Output begun = mul(s, add(s, cast(s, step, DType::f32), constant(s, 1.0f)),
                           constant(s, 1.0f / static_cast<float>(options.warmup)));
  return mul(s, scheduled, minimum(s, begun, constant(s, 1.0f)));
}

std::shared_ptr<const Compression> compression(const CompressionChoice& choice) {
  switch (choice.kind) {
    case CompressionChoice::Kind::none: return nullptr;
    case CompressionChoice::Kind::fp16: return fp16_compression();
    case CompressionChoice::Kind::bf16: return bf16_compression();
    case CompressionChoice::Kind::powersgd:
      return powersgd_compression(static_cast<std::int64_t>(choice.parameter));
    case CompressionChoice::Kind::topk: return topk_compression(choice.parameter);
  }
  return nullptr;
}

// What becomes of the averaged gradients before they are applied: shortened, then with the weights' decay as
// an L2 term, in PyTorch's order.
class ShapedGradients final : public Optimizer {
 public:
  ShapedGradients(std::unique_ptr<Optimizer> inner, std::optional<double> clip_norm,
                  std::optional<double> weight_decay)
      : Optimizer(inner->name()),
        inner_(std::move(inner)),
        clip_norm_(clip_norm),
        weight_decay_(weight_decay) {}

  std::vector<GradientPair> compute_gradients(Scope& s, Output loss, std::span<const Variable> variables,
                                              const ComputeGradientsOptions& options) override {
    auto pairs = inner_->compute_gradients(s, loss, variables, options);
    if (clip_norm_) pairs = clip_by_global_norm(s, pairs, *clip_norm_);
    if (!weight_decay_) return pairs;
    for (auto& [gradient, variable] : pairs)
      if (gradient)
        gradient = add(s, gradient, mul(s, variable.read(), constant(s, static_cast<float>(*weight_decay_))));
    return pairs;
  }
  Operation apply_gradients(Scope& s, std::span<const GradientPair> gradients,
                            const ApplyOptions& options) override {
    return inner_->apply_gradients(s, gradients, options);
  }
  Variable find_slot(const Variable& variable, const std::string& slot) const override {
    return inner_->find_slot(variable, slot);
  }

 private:
  std::unique_ptr<Optimizer> inner_;
  std::optional<double> clip_norm_, weight_decay_;
};

}  // namespace

Recipe build_training(Scope& s, Output loss, const TrainOptions& options, std::int64_t last_step,
                      Output rate_factor) {
  Hyperparameter rate = scheduled_rate(s, options, last_step);
  if (rate_factor) rate = mul(s, rate.in_graph(s, DType::f32, "scheduled_rate"), rate_factor);
  const bool decays_itself = optimizer_traits(options.optimizer).decays_weights;
  OptimizerSettings settings{.learning_rate = rate, .momentum = options.momentum};
  if (options.weight_decay && decays_itself) settings.weight_decay = *options.weight_decay;
  std::unique_ptr<Optimizer> optimizer = std::make_unique<DistributedOptimizer>(
      make_optimizer(options.optimizer, settings),
      DistributedOptimizerOptions{.compression = compression(options.compression),
                                  .backward_passes_per_step = options.backward_passes,
                                  .average_aggregated_gradients = true,
                                  .sharded = options.sharded});
  const auto weight_decay = decays_itself ? std::nullopt : options.weight_decay;
  if (options.clip_norm || weight_decay)
    optimizer = std::make_unique<ShapedGradients>(std::move(optimizer), options.clip_norm, weight_decay);
  Recipe recipe{.train_op = optimizer->minimize(s, loss),
                .learning_rate = rate,
                .averages = {},
                .start_averages = {},
                .swap_averages = {}};
  if (!options.average_decay) return recipe;
  ExponentialMovingAverage averages(*options.average_decay);
  recipe.train_op = averages.apply(s, trainable_variables(s.graph()), recipe.train_op);
  recipe.averages = averages.averages();
  recipe.start_averages = averages.start(s);
  recipe.swap_averages = averages.swap(s);
  return recipe;
}

}  // namespace kolo::models
