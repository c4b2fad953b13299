#include <kolo/optimizer/sign_descent.h>

#include <memory>

#include <kolo/core/ops/math.h>
#include <kolo/optimizer/registry.h>

namespace kolo {
namespace {

const RegisterOptimizer sign_descent("signsgd",
                                     [](const OptimizerSettings& settings) -> std::unique_ptr<Optimizer> {
                                       return std::make_unique<SignDescentOptimizer>(settings.learning_rate);
                                     });

}  // namespace

Operation SignDescentOptimizer::apply(const Scope& s, Output gradient, const Variable& variable) {
  const Output rate = scalar(learning_rate_, variable, "learning_rate");
  return Operation(assign_sub(s, variable, mul(s, sign(s, gradient), rate)).node);
}

}  // namespace kolo
