#include <kolo/models/programs/training_graph.h>

#include <kolo/core/graph/inference_form.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/math.h>
#include <kolo/models/layers.h>

namespace kolo::models {

TrainingGraph::TrainingGraph(const TrainOptions& options, const TrainingData& data, bool equal_parts,
                             bool as_pixels, std::int64_t last_step) {
  graph.set_seed(options.seed);
  Scope s(graph);
  // What a sample set divides by, to the bit.
  const auto scaled = [&] {
    samples = placeholder(s.named("pixels"), DType::u8, batch_shape(data.kind(), -1));
    return div(s.named("images"), cast(s, samples, DType::f32), constant(s, 255.0F));
  };
  images = as_pixels && data.kind().are_pixels ? scaled() : samples = samples_like(s, data.kind());
  labels = labels_like(s, data.kind());
  const Output logits = build_logits(s, options, data.kind(), images, &data);
  loss = with_penalties(s, build_loss(s, options, data.kind(), logits, labels));
  if (!equal_parts) weight = placeholder(s.named("batch_weight"), DType::f32, {});
  if (weight) loss = mul(s, loss, weight);
  if (options.scale_rate != RateRule::none) rate_factor = placeholder(s.named("rate_factor"), DType::f32, {});
  inferred = inference_form(s, logits);
  check = answer_check(s, options, data.kind(), inferred, images, labels);
  recipe = build_training(s, loss, options, last_step, rate_factor);
}

Feeds TrainingGraph::feeds(const Batch& batch, const RateScale& scale, std::int64_t step) const {
  Feeds fed = {{samples, batch.samples}, {labels, batch.labels}};
  if (weight) fed.emplace_back(weight, Tensor::scalar(batch.weight));
  if (rate_factor) fed.emplace_back(rate_factor, Tensor::scalar(scale.factor(step)));
  return fed;
}

}  // namespace kolo::models
