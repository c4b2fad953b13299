#include <kolo/models/predictor.h>

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <string>
#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/core/base/log.h>
#include <kolo/core/graph/graph_def.h>
#include <kolo/core/ops/activations.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/ops/variables.h>
#include <kolo/core/runtime/session.h>
#include <kolo/core/training/checkpoint_files.h>
#include <kolo/core/training/inference_graph.h>
#include <kolo/core/training/saver.h>
#include <kolo/models/column_scale.h>
#include <kolo/models/folder_config.h>
#include <kolo/models/paths.h>
#include <kolo/models/samples_internal.h>
#include <kolo/optimizer/moving_average.h>

namespace kolo::models {

struct Predictor::Network {
  explicit Network(const SessionConfig& config) : session(graph, config) {}

  Graph graph;
  Session session;
  Output samples, logits, answers;
  Shape sample;
  std::int64_t classes = 0;
  std::vector<std::string> class_names;
  std::int64_t global_step = 0;
  detail::NumberSizes numbers;       // of the training's
  std::vector<TableColumn> columns;  // where each has a unit,
  ColumnSizes column_sizes;          // and how large their numbers are
  std::atomic<bool> was_told = false;

  std::string scale_warning(const Tensor& given) const {
    std::string of_columns =
        columns.empty() ? ""
                        : detail::column_scale_warning(
                              "Predictor", columns, detail::sizes_of_columns(columns, given), column_sizes);
    if (!of_columns.empty() || !numbers.largest) return of_columns;
    return detail::scale_warning("Predictor", detail::sizes_of_numbers(given), numbers);
  }
};

namespace {

GraphDef network_in(const std::string& folder) {
  if (!detail::is_folder(folder)) throw NotFoundError("Predictor: there is no folder {}", folder);
  const std::string path = folder + "/" + kInferenceGraphFile;
  if (!detail::is_file(path))
    throw NotFoundError(
        "Predictor: there is no {} in {}; kolo-train writes one with its first checkpoint, "
        "write_inference_graph for other programs",
        kInferenceGraphFile, folder);
  return read_graph_def(path);
}

Output only_input(const Graph& graph, const std::string& folder) {
  std::vector<std::string> names;
  Output found;
  for (int id = 0; id < graph.num_nodes(); ++id) {
    if (graph.node(id).op() != "Placeholder") continue;
    names.push_back(graph.node(id).name());
    found = {&graph.node(id), 0};
  }
  if (names.size() != 1)
    throw InvalidArgumentError("Predictor: the network in {} has {} inputs ({}); it must have one", folder,
                               names.size(), fmt::join(names, ", "));
  return found;
}

Output only_output(const Graph& graph, const std::string& folder) {
  const auto& outputs = graph.collection(kInferenceOutputs);
  if (outputs.size() != 1)
    throw InvalidArgumentError("Predictor: the network in {} has {} outputs; it must have one", folder,
                               outputs.size());
  return {outputs.front(), 0};
}

// Averages of weights are saved beside the weights, and are better.
NamedVariables saved_variables(const Graph& graph, const CheckpointIndex& index) {
  NamedVariables named;
  for (const Variable& variable : global_variables(graph)) {
    const std::string average = variable.name() + kAverageSuffix;
    named.emplace_back(index.tensors.contains(average) ? average : variable.name(), variable);
  }
  return named;
}

// The dimensions from the second on, which are known.
Shape sample_of(const Output& samples, const std::string& folder) {
  const Shape& shape = samples.shape();
  std::vector<std::int64_t> dims;
  for (int i = 1; i < shape.rank(); ++i) dims.push_back(shape.dim(i));
  if (dims.empty() || std::any_of(dims.begin(), dims.end(), [](std::int64_t dim) { return dim < 1; }))
    throw InvalidArgumentError(
        "Predictor: the network in {} takes {}; it must take batches [N,...] of samples of known shape",
        folder, shape);
  return Shape(std::move(dims));
}

template <typename From, typename To, typename Convert>
Tensor converted(const Tensor& from, DType dtype, const Convert& convert) {
  Tensor made(dtype, from.shape());
  const auto elements = from.span<From>();
  std::transform(elements.begin(), elements.end(), made.data<To>(), convert);
  return made;
}

std::int32_t token(std::int64_t value) {
  if (!std::in_range<std::int32_t>(value))
    throw InvalidArgumentError("Predictor: token {} is of no class", value);
  return static_cast<std::int32_t>(value);
}

Tensor as_taken(const Tensor& samples, DType dtype) {
  if (samples.dtype() == dtype) return samples;
  if (dtype == DType::f32 && samples.dtype() == DType::u8)
    return converted<std::uint8_t, float>(
        samples, dtype, [](std::uint8_t pixel) { return static_cast<float>(pixel) / 255.0F; });
  if (dtype == DType::f32 && samples.dtype() == DType::f64)
    return converted<double, float>(samples, dtype, [](double value) { return static_cast<float>(value); });
  if (dtype == DType::i32 && samples.dtype() == DType::i64)
    return converted<std::int64_t, std::int32_t>(samples, dtype, token);
  throw InvalidArgumentError("Predictor: samples of {}; the network takes {}", samples.dtype(),
                             dtype == DType::i32 ? "i32 or i64" : "f32, f64 or u8");
}

void check_shape(const Shape& given, const Shape& sample) {
  const auto& dims = given.dims();
  if (given.rank() == sample.rank() + 1 && std::equal(dims.begin() + 1, dims.end(), sample.dims().begin()))
    return;
  throw InvalidArgumentError("Predictor: samples of shape {}; the network takes [N,{}]", given,
                             fmt::join(sample.dims(), ","));
}

}  // namespace

Predictor Predictor::load(const std::string& folder, const SessionConfig& config) {
  const GraphDef definition = network_in(folder);
  const auto checkpoint = newest_trained_checkpoint(folder);
  if (!checkpoint) throw NotFoundError("Predictor: there is no checkpoint in {}", folder);
  auto network = std::make_shared<Network>(config);
  const Scope s(network->graph);
  import_graph_def(s, definition);
  network->samples = only_input(network->graph, folder);
  network->logits = only_output(network->graph, folder);
  network->sample = sample_of(network->samples, folder);
  network->classes = network->logits.shape().rank() == 2 ? network->logits.shape().dim(1) : 0;
  if (network->classes < 1)
    throw InvalidArgumentError(
        "Predictor: the network in {} gives {}; it must give logits [N,classes] of known classes", folder,
        network->logits.shape());
  const auto config_json = load_folder_config(folder);
  network->answers =
      detail::answers_of(s, network->logits, config_json ? config_json->label_kind : LabelKind::one_class);
  const NamedVariables variables = saved_variables(network->graph, CheckpointReader(*checkpoint).index());
  network->global_step = Saver(variables).restore(network->session, *checkpoint).global_step.value_or(0);
  if (config_json) network->class_names = config_json->class_names;
  if (config_json && network->samples.dtype() == DType::f32)
    network->numbers = {.largest = config_json->largest, .least = config_json->least};
  if (config_json && !config_json->column_sizes.largest.empty() && network->samples.dtype() == DType::f32) {
    network->columns = detail::unit_columns(config_json->table.get(), network->sample, DType::f32);
    network->column_sizes = config_json->column_sizes;
    std::int64_t elements = 0;
    for (const TableColumn& column : network->columns) elements += column.elements();
    if (network->sample != Shape({elements})) network->columns.clear();
  }
  for (auto i = static_cast<std::int64_t>(network->class_names.size()); i < network->classes; ++i)
    network->class_names.push_back(std::to_string(i));
  return Predictor(std::move(network));
}

Predictor::Predictor(std::shared_ptr<Network> network) : network_(std::move(network)) {}

Tensor Predictor::operator()(const Tensor& samples) const { return run(network_->answers, samples); }
Tensor Predictor::logits(const Tensor& samples) const { return run(network_->logits, samples); }

Tensor Predictor::run(const Output& output, const Tensor& samples) const {
  check_shape(samples.shape(), sample());
  detail::check_finite("Predictor", samples);
  const Tensor taken = as_taken(samples, dtype());
  if (taken.elements() == 0) return Tensor(DType::f32, {0, classes()});
  if (!network_->was_told) {
    const std::string warning = network_->scale_warning(taken);
    if (!warning.empty() && !network_->was_told.exchange(true)) log_warning("{}", warning);
  }
  return network_->session.run(output, {{network_->samples, taken}});
}

const Shape& Predictor::sample() const { return network_->sample; }
DType Predictor::dtype() const { return network_->samples.dtype(); }
std::int64_t Predictor::classes() const { return network_->classes; }
const std::vector<std::string>& Predictor::class_names() const { return network_->class_names; }
std::int64_t Predictor::global_step() const { return network_->global_step; }

}  // namespace kolo::models

namespace kolo::models::detail {

Output answers_of(const Scope& s, Output logits, LabelKind kind) {
  switch (kind) {
    case LabelKind::one_class: return softmax(s, logits);
    case LabelKind::numbers: return logits;
    case LabelKind::several: return sigmoid(s, logits);
  }
  throw InternalError("answers_of: there is no such kind of labels");
}

}  // namespace kolo::models::detail
