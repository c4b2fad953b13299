#include <kolo/optimizer/rules.h>

#include <memory>

#include <kolo/core/ops/training.h>
#include <kolo/optimizer/registry.h>

namespace kolo {
namespace {

const RegisterOptimizer sgd("sgd", {.learning_rate = 0.1},
                            [](const OptimizerSettings& settings) -> std::unique_ptr<Optimizer> {
                              return std::make_unique<GradientDescentOptimizer>(settings.learning_rate);
                            });

}  // namespace

Operation GradientDescentOptimizer::apply(const Scope& s, Output gradient, const Variable& variable) {
  const Output rate = scalar(learning_rate_, variable, "learning_rate");
  return apply_update(s, {.rule = "GradientDescent", .variable = variable, .slots = {}, .scalars = {rate}},
                      gradient);
}

}  // namespace kolo
