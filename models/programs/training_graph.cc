#include <kolo/models/programs/training_graph.h>

#include <kolo/core/graph/inference_form.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/math.h>
#include <kolo/models/layers.h>

namespace kolo::models {

TrainingGraph::TrainingGraph(const TrainOptions& options, const TrainingData& data, bool equal_parts,
                             std::int64_t last_step) {
  graph.set_seed(options.seed);
  Scope s(graph);
  samples = samples_like(s, data.kind());
  labels = labels_like(s, data.kind());
  const Output logits = build_logits(s, options, data.kind(), samples, &data);
  loss = with_penalties(s, build_loss(s, options, data.kind(), logits, labels));
  if (!equal_parts) weight = placeholder(s.named("batch_weight"), DType::f32, {});
  if (weight) loss = mul(s, loss, weight);
  if (options.scale_rate != RateRule::none) rate_factor = placeholder(s.named("rate_factor"), DType::f32, {});
  inferred = inference_form(s, logits);
  check = answer_check(s, options, data.kind(), inferred, samples, labels);
  recipe = build_training(s, loss, options, last_step, rate_factor);
}

Feeds TrainingGraph::feeds(const Batch& batch, const RateScale& scale, std::int64_t step) const {
  Feeds fed = {{samples, batch.samples}, {labels, batch.labels}};
  if (weight) fed.emplace_back(weight, Tensor::scalar(batch.weight));
  if (rate_factor) fed.emplace_back(rate_factor, Tensor::scalar(scale.factor(step)));
  return fed;
}

}  // namespace kolo::models
