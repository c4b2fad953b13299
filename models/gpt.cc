#include <kolo/models/zoo.h>

#include <string>

#include <kolo/core/base/error.h>
#include <kolo/core/ops/activations.h>
#include <kolo/core/ops/attention.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/indexing.h>
#include <kolo/core/ops/linalg.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/ops/random.h>
#include <kolo/core/ops/shapes.h>
#include <kolo/core/ops/variables.h>
#include <kolo/models/layers.h>
#include <kolo/models/models.h>

namespace kolo::models {
namespace {

constexpr std::int64_t kContext = 128;

GptOptions gpt_options_of(const ModelSize& size) {
  GptOptions options{.vocabulary = size.classes};
  if (size.layers > 0) options.layers = size.layers;
  if (size.width > 0) options.width = size.width;
  if (size.heads > 0) options.heads = size.heads;
  options.dropout = size.dropout;
  return options;
}

const RegisterModel gpt_model({.name = "gpt",
                               .sample = {kContext},
                               .classes = 65,
                               .builder =
                                   [](Scope& s, Output tokens, const ModelSize& size) {
                                     return gpt(s, tokens, gpt_options_of(size));
                                   },
                               .input = DType::i32,
                               .sizes = {"layers", "width", "heads", "dropout", "context"}});

Variable normal(const Scope& s, const std::string& name, const Shape& shape) {
  return Variable(s.named(name), random_normal(s.named(name + "/initial_value"), DType::f32, shape, 0, 0.02));
}

// x [rows, inputs] → [rows, units].
Output linear(const Scope& s, Output x, std::int64_t units, const std::string& name, bool bias = true) {
  const Scope scope = s.name_scope(name);
  const Output y = matmul(scope, x, normal(scope, "w", {x.shape().dim(1), units}));
  if (!bias) return y;
  return bias_add(scope, y,
                  Variable(scope.named("b"), zeros(scope.named("b/initial_value"), DType::f32, {units})));
}

Output drop(const Scope& s, Output x, const GptOptions& options) {
  return options.dropout == 0 ? x : dropout(s, x, options.dropout);
}

// x [N·T, width], normalized → the same, each place a mean of those before it.
Output attention(const Scope& s, Output x, std::int64_t places, const GptOptions& options) {
  const Output qkv = reshape(s, linear(s, x, 3 * options.width, "qkv"), {-1, places, 3 * options.width});
  const Output seen = self_attention(s, qkv, {.heads = options.heads, .causal = true});
  return linear(s, reshape(s, seen, {-1, options.width}), options.width, "out");
}

void check(const Output& tokens, const GptOptions& options) {
  if (options.vocabulary < 1 || options.layers < 1 || options.width < 1 || options.heads < 1 ||
      options.width % options.heads != 0)
    throw InvalidArgumentError(
        "gpt: vocabulary {}, layers {}, width {}, heads {}; they must be at least 1, and the width a "
        "multiple of the heads",
        options.vocabulary, options.layers, options.width, options.heads);
  if (!(options.dropout >= 0 && options.dropout < 1))
    throw InvalidArgumentError("gpt: dropout {}; it must be at least 0 and below 1", options.dropout);
  if (tokens.dtype() != DType::i32 || !tokens.shape().has_rank() || tokens.shape().rank() != 2 ||
      tokens.shape().dim(1) < 1)
    throw InvalidArgumentError("gpt: its input {} is {} {}; it must be i32 [N,T], and T must be known",
                               tokens.name(), tokens.dtype(), tokens.shape());
}

}  // namespace

Output gpt(Scope& s, Output tokens, const GptOptions& options) {
  check(tokens, options);
  const std::int64_t places = tokens.shape().dim(1), width = options.width;
  const Variable vectors = normal(s, "tokens/w", {options.vocabulary, width});
  const Output of_tokens = gather(s, vectors, tokens);
  Output h = reshape(s, add(s, of_tokens, normal(s, "places/w", {places, width})), {-1, width});
  h = drop(s, h, options);
  for (std::int64_t i = 1; i <= options.layers; ++i) {
    const Scope block = s.name_scope("block" + std::to_string(i));
    const Output seen = attention(block, layer_norm(block, h, "norm1"), places, options);
    h = add(block, h, drop(block, seen, options));
    const Output wide = gelu(block, linear(block, layer_norm(block, h, "norm2"), 4 * width, "up"));
    h = add(block, h, drop(block, linear(block, wide, width, "down"), options));
  }
  h = layer_norm(s, h, "norm");
  return options.tied ? matmul(s.named("head"), h, vectors, {.transpose_b = true})
                      : linear(s, h, options.vocabulary, "head", false);
}

}  // namespace kolo::models
