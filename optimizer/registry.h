// Optimizers by name: what programs take from a command line.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <kolo/core/base/source_line.h>
#include <kolo/optimizer/optimizer.h>
#include <kolo/optimizer/rule_optimizer.h>

namespace kolo {

/// What optimizers are made from; each takes what it knows.
struct OptimizerSettings {
  Hyperparameter learning_rate = 0.001;
  Hyperparameter momentum = 0.9;                    // of "momentum", "nesterov" and "lars"
  std::optional<Hyperparameter> weight_decay = {};  // of those that decay weights; none: as much as they do
};

/// What a program needs to know of an optimizer that it takes by name.
struct OptimizerTraits {
  double learning_rate = 0.001;  // that a first try starts from; models of the zoo train with it
  bool decays_weights = false;   // OptimizerSettings::weight_decay
  bool takes_momentum = false;   // OptimizerSettings::momentum
};

using OptimizerFactory = std::unique_ptr<Optimizer> (*)(const OptimizerSettings& settings);

/// A namespace-scope constant of an optimizer's file. A second optimizer of one name is an InternalError at
/// start-up.
struct RegisterOptimizer {
  RegisterOptimizer(const std::string& name, OptimizerTraits traits, OptimizerFactory make,
                    SourceLine place = SourceLine::here());
};

/// Throws InvalidArgumentError that names the nearest optimizer and all that there are.
std::unique_ptr<Optimizer> make_optimizer(const std::string& name, const OptimizerSettings& settings = {});
/// Throws as make_optimizer.
OptimizerTraits optimizer_traits(const std::string& name);
/// Sorted.
std::vector<std::string> registered_optimizers();

}  // namespace kolo
