// kolo-numerics MODEL STEPS FILE RATE [SAMPLES]: training steps on one batch, all numbers of which another
// program can take. Writes FILE, in safetensors: "samples" (images are like photographs) and "labels";
// "initial/NAME", each trainable variable's first value; "gradient/NAME", of step 1; "losses" of all steps,
// by SGD with momentum 0.9 and this rate; "passed/STEP/I", steps from 0: 1 where the model's rectifier I, in
// the order of its layers, lets a number through; "kept/STEP/I": 1 where its dropout I does; "chosen/STEP/I":
// which element of each window its max pooling I takes. bench/compare_numerics.py does the same in PyTorch.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <bench/made_up_batch.h>
#include <kolo/collectives/job/init.h>
#include <kolo/core/base/durable_file.h>
#include <kolo/core/base/error.h>
#include <kolo/core/base/text.h>
#include <kolo/core/graph/gradients.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/losses.h>
#include <kolo/core/ops/variables.h>
#include <kolo/core/runtime/session.h>
#include <kolo/core/training/safetensors.h>
#include <kolo/models/models.h>
#include <kolo/optimizer/registry.h>

namespace kolo::bench {
namespace {

Outputs outputs_of(const Graph& graph, const std::string& op, int output) {
  Outputs found;
  for (int i = 0; i < graph.num_nodes(); ++i)
    if (graph.node(i).op() == op) found.push_back(graph.node(i).output(output));
  return found;
}

Tensor is_positive(const Tensor& values) {
  Tensor positive(DType::u8, values.shape());
  const auto from = values.span<float>();
  std::transform(from.begin(), from.end(), positive.data<std::uint8_t>(), [](float x) { return x > 0; });
  return positive;
}

// To `size` × `size` pixels: the numbers of the corners of a square grid of `cells`, and what lies between
// them, smoothly.
void add_octave(std::int64_t cells, std::int64_t size, const float* corners, float* pixels) {
  const auto place_of = [&](std::int64_t pixel) {
    const float at =
        (static_cast<float>(pixel) + 0.5f) * static_cast<float>(cells) / static_cast<float>(size);
    const auto cell = static_cast<std::int64_t>(at);
    const float part = at - static_cast<float>(cell);
    return std::pair(cell, part * part * (3 - 2 * part));
  };
  for (std::int64_t y = 0; y < size; ++y)
    for (std::int64_t x = 0; x < size; ++x) {
      const auto [row, down] = place_of(y);
      const auto [col, right] = place_of(x);
      const float* const above = corners + row * (cells + 1) + col;
      const float* const below = above + cells + 1;
      pixels[y * size + x] +=
          std::lerp(std::lerp(above[0], above[1], right), std::lerp(below[0], below[1], right), down);
    }
}

// Square images with as much in each octave as in the others, as photographs have, whose mean is near 0 and
// whose numbers are near 1 (Field, "Relations between the statistics of natural images and the response
// properties of cortical cells", 1987). Of pixels that have nothing to do with each other, which no network
// is trained on, deep networks' gradients are further off in f32, whoever computes them (bench/README.md).
Tensor simulated_photographs(const Shape& shape) {
  Tensor images(DType::f32, shape);
  const std::int64_t size = shape.dim(2);
  std::fill_n(images.data<float>(), images.elements(), 0.0f);
  const auto corners = [](std::int64_t cells) { return (cells + 1) * (cells + 1); };
  std::int64_t planes = shape.dim(0) * shape.dim(1), of_plane = 0;
  for (std::int64_t cells = 2; cells <= size / 2; cells *= 2) of_plane += corners(cells);
  const Tensor drawn = made_up_images({planes * of_plane});
  for (float& corner : drawn.span<float>()) corner = 2 * corner - 1;
  const float* next = drawn.data<float>();
  for (float* plane = images.data<float>(); planes > 0; --planes, plane += size * size)
    for (std::int64_t cells = 2; cells <= size / 2; next += corners(cells), cells *= 2)
      add_octave(cells, size, next, plane);
  return images;
}

std::map<std::string, Tensor> numbers_of(const models::Model& model, std::int64_t steps, double rate,
                                         std::optional<std::int64_t> size) {
  MadeUpBatch batch = made_up_batch(model, size);
  if (batch.samples.shape().rank() == 4) batch.samples = simulated_photographs(batch.samples.shape());
  std::map<std::string, Tensor> numbers{{"samples", batch.samples}, {"labels", batch.labels}};
  Graph graph;
  graph.set_seed(1);
  Scope s(graph);
  const Output samples = placeholder(s, model.input, batch.samples.shape()),
               labels = placeholder(s, DType::i32, batch.labels.shape());
  const Output loss = softmax_cross_entropy(s, model.build(s, samples), labels);
  const Outputs rectified = outputs_of(graph, "Relu", 0), kept = outputs_of(graph, "Dropout", 1),
                chosen = outputs_of(graph, "MaxPool", 1);
  const auto optimizer = make_optimizer("momentum", {.learning_rate = rate});
  const std::vector<GradientPair> pairs = optimizer->compute_gradients(s, loss);
  const Operation train = optimizer->apply_gradients(s, pairs);

  SessionConfig config;
  config.intra_op_parallelism_threads = config.inter_op_parallelism_threads = 1;
  Session session(graph, config);
  session.run(global_variables_initializer(s));
  const Feeds feeds = {{samples, batch.samples}, {labels, batch.labels}};
  std::vector<Fetch> variables, of_step = {loss, train};
  for (const GradientPair& pair : pairs) variables.emplace_back(pair.variable);
  const auto initial = session.run(variables);
  for (std::size_t i = 0; i < pairs.size(); ++i) numbers["initial/" + pairs[i].variable.name()] = initial[i];
  of_step.insert(of_step.end(), rectified.begin(), rectified.end());
  of_step.insert(of_step.end(), kept.begin(), kept.end());
  of_step.insert(of_step.end(), chosen.begin(), chosen.end());
  std::vector<Fetch> of_first = of_step;  // whose dropout its gradients are to have
  for (const GradientPair& pair : pairs) of_first.emplace_back(pair.gradient);
  Tensor losses(DType::f32, {steps});
  for (std::int64_t step = 0; step < steps; ++step) {
    const auto fetched = session.run(step == 0 ? of_first : of_step, feeds);
    losses.data<float>()[step] = fetched[0].value<float>();
    auto next = fetched.begin() + 2;
    for (std::size_t i = 0; i < rectified.size(); ++i)
      numbers[fmt::format("passed/{}/{}", step, i)] = is_positive(*next++);
    for (std::size_t i = 0; i < kept.size(); ++i) numbers[fmt::format("kept/{}/{}", step, i)] = *next++;
    for (std::size_t i = 0; i < chosen.size(); ++i) numbers[fmt::format("chosen/{}/{}", step, i)] = *next++;
    for (; next != fetched.end(); ++next)
      numbers["gradient/" +
              pairs[static_cast<std::size_t>(next - fetched.end()) + pairs.size()].variable.name()] = *next;
  }
  numbers["losses"] = losses;
  return numbers;
}

void run(int argc, char** argv) {
  const bool known = argc == 5 || argc == 6;
  const auto steps = known ? parse_int64(argv[2]) : std::nullopt,
             samples = argc == 6 ? parse_int64(argv[5]) : std::nullopt;
  const auto rate = known ? parse_double(argv[4]) : std::nullopt;
  if (!steps || *steps < 1 || !rate || (argc == 6 && (!samples || *samples < 1)))
    throw InvalidArgumentError("usage: kolo-numerics MODEL STEPS FILE RATE [SAMPLES]");
  const auto numbers = numbers_of(models::find_model(argv[1]), *steps, *rate, samples);
  DurableFile file(argv[3]);
  write_safetensors(file, numbers);
  file.finish();
  file.publish();
}

}  // namespace
}  // namespace kolo::bench

int main(int argc, char** argv) {
  try {
    kolo::init(&argc, &argv);
    kolo::bench::run(argc, argv);
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "kolo-numerics: {}\n", error.what());
    return 1;
  }
}
