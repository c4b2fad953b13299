// A model and data of one's own, from zero to evaluation; docs/tutorial.md explains it line by line.
// mpirun -n 2 your_own [SAMPLES.csv [WEIGHTS.safetensors]]
#include <cmath>
#include <cstdio>
#include <fstream>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <kolo/kolo.h>

using namespace kolo;

struct Samples {
  std::vector<float> x;              // two numbers for each sample
  std::vector<std::int32_t> labels;  // 0 or 1
  std::int64_t size() const { return static_cast<std::int64_t>(labels.size()); }
};

// Lines such as 0.25,-1.5,1
Samples read_samples(const std::string& path) {
  Samples samples;
  std::ifstream file(path);
  if (!file) throw NotFoundError("{}: no such file", path);
  float a = 0, b = 0;
  int label = 0;
  for (std::string line; std::getline(file, line);) {
    if (std::sscanf(line.c_str(), "%f,%f,%d", &a, &b, &label) != 3)
      throw InvalidArgumentError("{}: \"{}\" is no line such as 0.25,-1.5,1", path, line);
    samples.x.insert(samples.x.end(), {a, b});
    samples.labels.push_back(label);
  }
  if (samples.labels.empty()) throw InvalidArgumentError("{}: there are no samples in it", path);
  return samples;
}

// Two arms of a spiral, in no order along them.
Samples draw_samples(int each) {
  Samples samples;
  for (int i = 0; i < 2 * each; ++i) {
    const float t = 0.5f + 2.5f * static_cast<float>(i * 379 % each) / static_cast<float>(each);
    const float side = i % 2 == 0 ? 1.0f : -1.0f;
    samples.x.insert(samples.x.end(), {side * t * std::cos(2 * t), side * t * std::sin(2 * t)});
    samples.labels.push_back(i % 2);
  }
  return samples;
}

Output classify(const Scope& s, Output x) {
  auto hidden = relu(s, models::dense(s, x, 64, "first"));
  hidden = relu(s, models::dense(s, hidden, 64, "second"));
  return models::dense(s, hidden, 2, "classes");
}

struct Batch {
  Tensor x, labels;
};

// Samples first, first + stride, …: this rank's part of a batch of all ranks.
Batch batch_of(const Samples& samples, std::int64_t first, std::int64_t stride, std::int64_t count) {
  std::vector<float> x;
  std::vector<std::int32_t> labels;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto k = static_cast<std::size_t>((first + i * stride) % samples.size());
    x.insert(x.end(), {samples.x[2 * k], samples.x[2 * k + 1]});
    labels.push_back(samples.labels[k]);
  }
  return {Tensor::of<float>({count, 2}, std::span<const float>(x)),
          Tensor::of<std::int32_t>({count}, std::span<const std::int32_t>(labels))};
}

int main(int argc, char** argv) {
  init(&argc, &argv);
  const Samples samples = argc > 1 ? read_samples(argv[1]) : draw_samples(500);

  Graph graph;
  graph.set_seed(1);
  Scope s(graph);
  auto x = placeholder(s, DType::f32, {-1, 2}), y = placeholder(s, DType::i32, {-1});
  auto logits = classify(s, x);
  auto loss = softmax_cross_entropy(s, logits, y);
  auto right = reduce_mean(s, cast(s, equal(s, argmax(s, logits), cast(s, y, DType::i64)), DType::f32));
  DistributedOptimizer optimizer(std::make_unique<AdamOptimizer>(0.005f));
  auto train_op = optimizer.minimize(s, loss);

  constexpr std::int64_t kSteps = 600, kBatch = 32;
  MonitoredTrainingSession session(
      graph, {.checkpoint_dir = "your_own_logs",
              .hooks = {std::make_shared<BroadcastGlobalVariablesHook>(0),
                        std::make_shared<NanTensorHook>(loss), std::make_shared<StopAtStepHook>(kSteps)},
              .initial_weights = {.path = argc > 2 ? argv[2] : ""}});
  while (session.global_step() < kSteps && !session.should_stop()) {
    const std::int64_t first = session.global_step() * kBatch * size() + rank();
    const Batch batch = batch_of(samples, first, size(), kBatch);
    session.run(train_op, {{x, batch.x}, {y, batch.labels}});
  }

  const Batch all = batch_of(samples, 0, 1, samples.size());
  const float share = session.session().run(right, {{x, all.x}, {y, all.labels}}).value<float>();
  if (rank() == 0)
    std::printf("step %lld: %.1f %% of %lld samples\n", static_cast<long long>(session.global_step()),
                100 * share, static_cast<long long>(samples.size()));
}
