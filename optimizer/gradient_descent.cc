#include <kolo/optimizer/gradient_descent.h>

#include <memory>

#include <kolo/core/ops/training_ops.h>
#include <kolo/optimizer/registry.h>

namespace kolo {
namespace {

const RegisterOptimizer sgd("sgd", [](const OptimizerSettings& settings) -> std::unique_ptr<Optimizer> {
  return std::make_unique<GradientDescentOptimizer>(settings.learning_rate);
});

}  // namespace

Operation GradientDescentOptimizer::apply_dense(const Scope& s, Output gradient, const Variable& variable) {
  return apply_gradient_descent(s, variable, learning_rate_.scalar(s, variable.dtype(), "learning_rate"),
                                gradient);
}

}  // namespace kolo
