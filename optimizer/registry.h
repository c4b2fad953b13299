// Optimizers by name: what programs take from a command line.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <kolo/core/base/source_line.h>
#include <kolo/optimizer/optimizer.h>
#include <kolo/optimizer/rule_optimizer.h>

namespace kolo {

/// What optimizers are made from; each takes what it knows.
struct OptimizerSettings {
  Hyperparameter learning_rate = 0.001;
  Hyperparameter momentum = 0.9;  // of "momentum" and "nesterov"
};

using OptimizerFactory = std::unique_ptr<Optimizer> (*)(const OptimizerSettings& settings);

/// A namespace-scope constant of an optimizer's file. A second optimizer of one name is an InternalError at
/// start-up.
struct RegisterOptimizer {
  RegisterOptimizer(const std::string& name, OptimizerFactory make, SourceLine place = SourceLine::here());
};

/// Throws InvalidArgumentError that names the nearest optimizer and all that there are.
std::unique_ptr<Optimizer> make_optimizer(const std::string& name, const OptimizerSettings& settings = {});
/// Sorted.
std::vector<std::string> registered_optimizers();

}  // namespace kolo
