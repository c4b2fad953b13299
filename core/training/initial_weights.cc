#include <kolo/core/training/initial_weights.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

#include <kolo/core/base/error.h>
#include <kolo/core/base/log.h>
#include <kolo/core/base/text.h>
#include <kolo/core/ops/variables.h>
#include <kolo/core/runtime/session_variables.h>
#include <kolo/core/training/checkpoint_files.h>
#include <kolo/core/training/rank_state_internal.h>
#include <kolo/core/training/safetensors.h>
#include <kolo/core/training/variable_slices.h>

namespace kolo {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostNamed = 5;  // in an error

std::vector<Variable> weights_of(const Graph& graph) {
  const detail::RankStates states(graph);
  const Variable step = find_global_step(graph);
  std::vector<Variable> weights;
  for (const Variable& variable : global_variables(graph)) {
    const RankState& state = states.of(variable);
    if (state.kind == RankState::Kind::shared && !state.optional && !(step && variable == step))
      weights.push_back(variable);
  }
  return weights;
}

// The safetensors file that `path` means; a checkpoint's has been compared with its sums.
std::string file_of(const std::string& path) {
  std::error_code error;
  std::optional<std::string> prefix;
  if (fs::is_directory(path, error)) {
    prefix = newest_trained_checkpoint(path);
    if (!prefix) throw NotFoundError("initial weights: there is no checkpoint in the folder {}", path);
  } else if (fs::exists(checkpoint_index_path(path), error)) {
    prefix = path;
  }
  if (!prefix) return path;
  CheckpointReader(*prefix).verify();
  return checkpoint_tensors_path(*prefix);
}

// `"a", "b" and 3 more`
std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size() && i < kMostNamed; ++i)
    text += fmt::format("{}\"{}\"", i == 0 ? "" : ", ", names[i]);
  if (names.size() > kMostNamed) text += fmt::format(" and {} more", names.size() - kMostNamed);
  return text;
}

void check_names(const std::vector<Variable>& weights, const InitialWeights& from) {
  std::vector<std::string> known;
  for (const Variable& weight : weights) known.push_back(detail::in_file(weight).whole);
  for (const auto& [variable, tensor] : from.names)
    if (std::find(known.begin(), known.end(), variable) == known.end())
      throw InvalidArgumentError("initial weights: \"{}\" is no weight of the model{}", variable,
                                 did_you_mean(variable, known));
}

using Pairs = std::vector<std::pair<Variable, std::string>>;  // with the tensor's name

Pairs pairs_of(const std::vector<Variable>& weights, const InitialWeights& from) {
  Pairs pairs;
  for (const Variable& weight : weights) {
    const std::string own = detail::in_file(weight).whole;
    const auto other = from.names.find(own);
    const std::string& name = other == from.names.end() ? own : other->second;
    if (!name.empty()) pairs.emplace_back(weight, name);
  }
  return pairs;
}

// What `name` means in the file.
detail::WeightSource source_of(const SafetensorsReader& reader, const std::string& name) {
  return detail::weight_source(name, reader.entries().count(name) > 0);
}

void check_fits(const SafetensorsReader& reader, const Pairs& pairs, const std::string& file) {
  std::vector<std::string> missing, held;
  for (const auto& [weight, name] : pairs)
    if (reader.entries().count(source_of(reader, name).tensor) == 0 &&
        (missing.empty() || missing.back() != name))
      missing.push_back(name);
  for (const auto& [name, entry] : reader.entries()) held.push_back(name);
  if (!missing.empty())
    throw NotFoundError(
        "initial weights: {} lacks {}; it holds {}; give the names of its tensors for the variables that are "
        "called otherwise",
        file, listed(missing), held.empty() ? "nothing" : listed(held));
  for (const auto& [weight, name] : pairs) {
    const detail::WeightSource source = source_of(reader, name);
    const SafetensorsEntry& entry = reader.entries().at(source.tensor);
    const VariableSlice held = detail::in_file(weight);
    if (source.transposed && entry.shape.rank() != 2)
      throw InvalidArgumentError(
          "initial weights: \"{}\" asks for the transpose of \"{}\", which is {} in {}; only a matrix has "
          "one",
          name, source.tensor, entry.shape, file);
    const Shape shape = source.transposed ? Shape{entry.shape.dim(1), entry.shape.dim(0)} : entry.shape;
    if (!entry.unknown_type.empty())
      throw UnimplementedError("initial weights: \"{}\" has the type {} in {}, which kolo has not", name,
                               entry.unknown_type, file);
    if (entry.dtype != weight.dtype() || shape != held.shape)
      throw InvalidArgumentError(
          "initial weights: \"{}\" is {} {} in {}; variable \"{}\" is {} {}; with \"\" as the name of its "
          "tensor it begins anew",
          name, entry.dtype, shape, file, held.whole, weight.dtype(), held.shape);
  }
}

}  // namespace

void load_initial_weights(Session& session, const InitialWeights& from) {
  const std::vector<Variable> weights = weights_of(session.graph());
  check_names(weights, from);
  const std::string file = file_of(from.path);
  SafetensorsReader reader(file);
  const Pairs pairs = pairs_of(weights, from);
  check_fits(reader, pairs, file);
  const auto read = [&](const std::string& name, const Tensor& into) {
    const detail::WeightSource source = source_of(reader, name);
    if (source.transposed) detail::transpose_matrix(reader.read(source.tensor), into);
    else reader.read(source.tensor, into);
  };
  detail::WholeReader wholes(read);
  std::vector<Variable> targets;
  for (const auto& [weight, name] : pairs) targets.push_back(weight);
  detail::write_values(session, targets, [&](std::size_t i, const Tensor& into) {
    const auto& [weight, name] = pairs[i];
    if (const auto slice = variable_slice(weight)) wholes.read(name, *slice, into);
    else read(name, into);
  });
  log_info("{} of {} weights were read from {}", pairs.size(), weights.size(), file);
}

}  // namespace kolo
