#include <kolo/models/zoo.h>

#include <vector>

#include <kolo/core/base/error.h>
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

LstmOptions lstm_options_of(const ModelSize& size) {
  LstmOptions options{.vocabulary = size.classes};
  if (size.layers > 0) options.layers = size.layers;
  if (size.width > 0) options.width = size.width;
  return options;
}

const RegisterModel lstm_model({.name = "lstm",
                                .sample = {64},
                                .classes = 65,
                                .builder =
                                    [](Scope& s, Output tokens, const ModelSize& size) {
                                      return lstm(s, tokens, lstm_options_of(size));
                                    },
                                .input = DType::i32,
                                .sizes = {"layers", "width", "context"}});

// The forget gates' at 1: what is in a cell stays there until something is learnt.
Variable gate_biases(const Scope& s, std::int64_t units) {
  const Scope start = s.name_scope("b_start");
  const Output zero = zeros(start, DType::f32, {units}), rest = zeros(start, DType::f32, {2 * units});
  return Variable(s.named("b"), concat(start, {zero, fill(start, DType::f32, {units}, 1), rest}, 0));
}

void check(const Output& tokens, const LstmOptions& options) {
  if (options.vocabulary < 1 || options.layers < 1 || options.width < 1)
    throw InvalidArgumentError("lstm: vocabulary {}, layers {}, width {}; they must be at least 1",
                               options.vocabulary, options.layers, options.width);
  if (tokens.dtype() != DType::i32 || !tokens.shape().has_rank() || tokens.shape().rank() != 2 ||
      tokens.shape().dim(1) < 1)
    throw InvalidArgumentError("lstm: its input {} is {} {}; it must be i32 [N,T], and T must be known",
                               tokens.name(), tokens.dtype(), tokens.shape());
}

}  // namespace

Output lstm_layer(const Scope& s, Output x, std::int64_t steps, std::int64_t units, const std::string& name) {
  if (!x.shape().has_rank() || x.shape().rank() != 2 || x.shape().dim(1) < 1 || steps < 1 || units < 1)
    throw InvalidArgumentError(
        "layer \"{}\": {} steps of {} {} to {} units; it must be [T·N, inputs], inputs known, and all at "
        "least 1",
        name, steps, x.name(), x.shape(), units);
  const Scope layer = s.name_scope(name);
  const auto matrix = [&](const char* of, std::int64_t rows) {
    return Variable(layer.named(of), glorot_uniform(layer.named(std::string(of) + "/initial_value"),
                                                    x.dtype(), {rows, 4 * units}));
  };
  const Variable w = matrix("w", x.shape().dim(1)), u = matrix("u", units), b = gate_biases(layer, units);
  // What comes in, of all steps in one product.
  const Outputs inputs = split(layer, bias_add(layer, matmul(layer, x, w), b), static_cast<int>(steps));
  Outputs outputs;
  Output h, c;
  for (const Output& input : inputs) {
    const Output z = h ? add(layer, input, matmul(layer, h, u)) : input;
    const Outputs gates = split(layer, z, 4, 1);
    const Output fresh = mul(layer, sigmoid(layer, gates[0]), tanh(layer, gates[2]));
    c = c ? add(layer, mul(layer, sigmoid(layer, gates[1]), c), fresh) : fresh;
    h = mul(layer, sigmoid(layer, gates[3]), tanh(layer, c));
    outputs.push_back(h);
  }
  return concat(layer, outputs, 0);
}

Output lstm(Scope& s, Output tokens, const LstmOptions& options) {
  check(tokens, options);
  const std::int64_t steps = tokens.shape().dim(1), width = options.width;
  const Variable vectors(s.named("tokens/w"), random_normal(s.named("tokens/w/initial_value"), DType::f32,
                                                            {options.vocabulary, width}, 0, 0.1));
  Output h = reshape(s, gather(s, vectors, transpose(s, tokens)), {-1, width});
  for (std::int64_t i = 1; i <= options.layers; ++i)
    h = lstm_layer(s, h, steps, width, "lstm" + std::to_string(i));
  // Back to one sequence after the other, as the labels are.
  h = transpose(s, reshape(s, h, {steps, -1, width}), {1, 0, 2});
  return dense(s, reshape(s, h, {-1, width}), options.vocabulary, "head");
}

}  // namespace kolo::models
