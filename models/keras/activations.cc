#include <algorithm>

#include <kolo/core/base/error.h>
#include <kolo/core/ops/activations.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/math.h>
#include <kolo/models/keras/layer_internal.h>

namespace kolo::keras::detail {
namespace {

Output number(const Scope& s, const Output& like, double value) { return fill(s, like.dtype(), {}, value); }

Output softsign(const Scope& s, Output x) { return div(s, x, add(s, abs(s, x), number(s, x, 1))); }

Output hard_sigmoid(const Scope& s, Output x) {
  return clip_by_value(s, add(s, mul(s, x, number(s, x, 0.2)), number(s, x, 0.5)), 0, 1);
}

using Activate = Output (*)(const Scope& s, Output x);

const std::map<std::string, Activate>& known_activations() {
  static const std::map<std::string, Activate> known = {
      {"linear", [](const Scope&, Output x) { return x; }},
      {"relu", [](const Scope& s, Output x) { return relu(s, x); }},
      {"sigmoid", [](const Scope& s, Output x) { return sigmoid(s, x); }},
      {"tanh", [](const Scope& s, Output x) { return tanh(s, x); }},
      {"elu", [](const Scope& s, Output x) { return elu(s, x); }},
      {"selu", [](const Scope& s, Output x) { return selu(s, x); }},
      {"softplus", [](const Scope& s, Output x) { return softplus(s, x); }},
      {"softsign", softsign},
      {"exponential", [](const Scope& s, Output x) { return exp(s, x); }},
      {"hard_sigmoid", hard_sigmoid},
      {"softmax", nullptr}};  // has an axis
  return known;
}

}  // namespace

std::string activation_name(const std::string& name) { return name.empty() ? "linear" : name; }

void check_activation(const std::string& name) {
  if (known_activations().count(activation_name(name)) == 0)
    throw InvalidArgumentError("{}", unknown_text("activation function", name, keys_of(known_activations())));
}

Output activate(const Scope& s, const std::string& name, Output x, int softmax_axis) {
  check_activation(name);
  if (name == "softmax") return softmax(s, x, softmax_axis);
  return known_activations().at(activation_name(name))(s, x);
}

}  // namespace kolo::keras::detail
