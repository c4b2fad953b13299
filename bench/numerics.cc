// kolo-numerics MODEL STEPS FILE [SAMPLES]: training steps on one batch, all numbers of which another program
// can take. Writes FILE, in safetensors: "samples" and "labels"; "initial/NAME", each trainable variable's
// first value; "gradient/NAME", of step 1; "losses" of all steps, by SGD with momentum 0.9 and rate 0.01;
// "passed/STEP/I", steps from 0: 1 where the model's rectifier I, in the order of its layers, lets a number
// through. bench/compare_numerics.py does the same in PyTorch.
#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <map>
#include <optional>
#include <string>
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

Outputs rectifiers(const Graph& graph) {
  Outputs found;
  for (int i = 0; i < graph.num_nodes(); ++i)
    if (graph.node(i).op() == "Relu") found.push_back(graph.node(i).output());
  return found;
}

Tensor is_positive(const Tensor& values) {
  Tensor positive(DType::u8, values.shape());
  const auto from = values.span<float>();
  std::transform(from.begin(), from.end(), positive.data<std::uint8_t>(), [](float x) { return x > 0; });
  return positive;
}

std::map<std::string, Tensor> numbers_of(const models::Model& model, std::int64_t steps,
                                         std::optional<std::int64_t> size) {
  const MadeUpBatch batch = made_up_batch(model, size);
  std::map<std::string, Tensor> numbers{{"samples", batch.samples}, {"labels", batch.labels}};
  Graph graph;
  graph.set_seed(1);
  Scope s(graph);
  const Output samples = placeholder(s, model.input, batch.samples.shape()),
               labels = placeholder(s, DType::i32, batch.labels.shape());
  const Output loss = softmax_cross_entropy(s, model.build(s, samples), labels);
  const std::vector<Variable> variables = trainable_variables(graph);
  Outputs values(variables.begin(), variables.end());
  const Outputs of_values = gradients(s, {loss}, values);
  const auto optimizer = make_optimizer("momentum", {.learning_rate = 0.01});
  const Operation train = optimizer->minimize(s, loss);

  SessionConfig config;
  config.intra_op_parallelism_threads = config.inter_op_parallelism_threads = 1;
  Session session(graph, config);
  session.run(global_variables_initializer(s));
  const Feeds feeds = {{samples, batch.samples}, {labels, batch.labels}};
  const auto initial = session.run(std::vector<Fetch>(values.begin(), values.end()));
  const auto first = session.run(std::vector<Fetch>(of_values.begin(), of_values.end()), feeds);
  for (std::size_t i = 0; i < variables.size(); ++i) {
    numbers["initial/" + variables[i].name()] = initial[i];
    numbers["gradient/" + variables[i].name()] = first[i];
  }
  std::vector<Fetch> of_step = {loss, train};
  for (const Output rectified : rectifiers(graph)) of_step.push_back(rectified);
  Tensor losses(DType::f32, {steps});
  for (std::int64_t step = 0; step < steps; ++step) {
    const auto fetched = session.run(of_step, feeds);
    losses.data<float>()[step] = fetched[0].value<float>();
    for (std::size_t i = 2; i < of_step.size(); ++i)
      numbers[fmt::format("passed/{}/{}", step, i - 2)] = is_positive(fetched[i]);
  }
  numbers["losses"] = losses;
  return numbers;
}

void run(int argc, char** argv) {
  const auto steps = argc == 4 || argc == 5 ? parse_int64(argv[2]) : std::nullopt,
             samples = argc == 5 ? parse_int64(argv[4]) : std::nullopt;
  if (!steps || *steps < 1 || (argc == 5 && (!samples || *samples < 1)))
    throw InvalidArgumentError("usage: kolo-numerics MODEL STEPS FILE [SAMPLES]");
  const auto numbers = numbers_of(models::find_model(argv[1]), *steps, samples);
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
