// A number that steers an optimizer: fixed, or computed in the graph.
#pragma once

#include <optional>
#include <string>
#include <type_traits>
#include <variant>

#include <kolo/core/graph/scope.h>

namespace kolo {

/// A value. A number is kept in f64, so that 0.1 is not 0.1f for a variable of type f64; an Output is a
/// floating point scalar of the graph (a placeholder, a schedule over the global step) and is read anew in
/// every step.
class Hyperparameter {
 public:
  template <typename Number>
  requires std::is_arithmetic_v<Number> Hyperparameter(Number value) : value_(static_cast<double>(value)) {}
  /// Throws InvalidArgumentError unless it is a floating point scalar.
  Hyperparameter(Output value);

  /// The value, unless it is computed in the graph.
  std::optional<double> number() const;
  /// As a scalar of its own type where it is computed in the graph, else of type `dtype`.
  Output in_graph(const Scope& s, DType dtype, const std::string& name) const;
  /// As a scalar of type `dtype`; a node that it takes is named `name`.
  Output scalar(const Scope& s, DType dtype, const std::string& name) const;

 private:
  std::variant<double, Output> value_;
};

}  // namespace kolo
