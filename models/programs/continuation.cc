#include <kolo/models/programs/continuation.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <kolo/core/base/error.h>
#include <kolo/core/base/json_text.h>
#include <kolo/core/base/process.h>
#include <kolo/core/base/utf8.h>
#include <kolo/models/data.h>
#include <kolo/models/programs/restored_model.h>
#include <kolo/models/programs/shared_errors.h>
#include <kolo/models/programs/training_config.h>

namespace kolo::models {
namespace {

Text alphabet_of(const FolderConfig& config) {
  if (static_cast<std::int64_t>(config.class_names.size()) != config.classes)
    throw FailedPreconditionError(
        "--prompt: {} does not hold the characters of its text; go on with the training there for a step",
        config.folder);
  return Text(bytes_named(config.class_names));
}

std::vector<std::int32_t> prompt_of(const TrainOptions& options, const Text& alphabet) {
  if (options.prompt->empty())
    throw InvalidArgumentError("--prompt \"\" is not valid; it must hold at least one character");
  // All bytes of a character may stand in a text that has not the character.
  if (options.found->characters) check_prompt(*options.prompt, *options.found->characters);
  return alphabet.encode(*options.prompt);
}

// Equal seeds give equal texts on every machine: std::discrete_distribution would not.
std::int32_t draw(std::span<const float> logits, double temperature, std::mt19937_64& random) {
  const auto likeliest = std::max_element(logits.begin(), logits.end());
  if (temperature == 0) return static_cast<std::int32_t>(likeliest - logits.begin());
  std::vector<double> weights;
  for (const float logit : logits) weights.push_back(std::exp((logit - *likeliest) / temperature));
  double sum = 0;
  for (const double weight : weights) sum += weight;
  double left = static_cast<double>(random() >> 11) * 0x1p-53 * sum;
  std::size_t chosen = 0;
  while ((left -= weights[chosen]) >= 0 && chosen + 1 < weights.size()) ++chosen;
  return static_cast<std::int32_t>(chosen);
}

}  // namespace

void continue_text(const TrainOptions& options) {
  const SampleKind kind = kind_of(*options.found);
  OwnGpu gpu;
  std::vector<std::int32_t> tokens;
  const std::string alphabet = on_all_ranks([&] {
    gpu = gpu_of_this_rank(options.device);
    const Text characters = alphabet_of(*options.found);
    tokens = prompt_of(options, characters);
    return characters.alphabet();
  });
  RestoredModel model(options, kind, gpu);
  if (process().rank != 0) return;
  const auto context = static_cast<std::size_t>(kind.shape.dim(0));
  std::mt19937_64 random(static_cast<std::uint64_t>(options.seed));
  std::string written;
  for (std::int64_t i = 0; i < options.length; ++i) {
    const std::size_t seen = std::min(tokens.size(), context);
    // Behind the last token anything may stand: no token sees those behind it.
    const Tensor window = Tensor::zeros(DType::i32, {1, kind.shape.dim(0)});
    std::copy(tokens.end() - static_cast<std::ptrdiff_t>(seen), tokens.end(), window.data<std::int32_t>());
    const Tensor logits = model.session().run(model.logits(), {{model.samples(), window}});
    tokens.push_back(draw(logits.span<float>().subspan((seen - 1) * alphabet.size(), alphabet.size()),
                          options.temperature, random));
    written += alphabet[static_cast<std::size_t>(tokens.back())];
  }
  written.resize(utf8_prefix(written).size());
  if (options.json)
    fmt::print("{}\n", json_text(nlohmann::ordered_json{{"prompt", *options.prompt}, {"text", written}}));
  else fmt::print("{}{}\n", *options.prompt, written);
  std::fflush(stdout);
}

}  // namespace kolo::models
