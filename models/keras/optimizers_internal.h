// What is behind an optimizer's handle, and the rules that it makes.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <kolo/models/keras/optimizers.h>

namespace kolo::keras::detail {

struct Clipping {
  double norm = 0, value = 0, global_norm = 0;  // 0: none
};

/// What rules compute with: numbers of Keras' arguments, and those that are variables.
struct RuleNumbers {
  std::map<std::string, double> numbers;
  std::map<std::string, bool> flags = {};
  Clipping clipping = {};
  Output rate = {};  // with its decay
  Variable momentum = {};
  Variable iterations = {};
};

/// "SGD", … as kolo's interface wants it: clips in compute_gradients.
std::unique_ptr<kolo::Optimizer> make_rule(const std::string& name, const RuleNumbers& numbers);
/// The gradients of the pairs, none of them slices, within these limits.
std::vector<GradientPair> clipped(const Scope& s, std::vector<GradientPair> pairs, const Clipping& limits);

class OptimizerImpl {
 public:
  OptimizerImpl(std::string name, std::map<std::string, double> numbers,
                std::map<std::string, bool> flags = {}, Clipping clipping = {});
  explicit OptimizerImpl(std::shared_ptr<kolo::Optimizer> own) : name_(own->name()), own_(std::move(own)) {}

  const std::string& name() const { return name_; }
  bool is_kolos() const { return own_ != nullptr; }
  /// Makes the variables that it steers by, where it has none in this workspace.
  void bind(Workspace& workspace);
  /// For one compile.
  std::unique_ptr<kolo::Optimizer> make() const;
  const std::map<std::string, Variable>& variables() const { return variables_; }
  Workspace* workspace() const { return workspace_; }
  bool has(const std::string& number) const;
  nlohmann::ordered_json config() const;

 private:
  std::string name_;
  std::map<std::string, double> numbers_;
  std::map<std::string, bool> flags_;
  Clipping clipping_;
  std::shared_ptr<kolo::Optimizer> own_;
  Workspace* workspace_ = nullptr;
  std::map<std::string, Variable> variables_;  // lr, momentum, decay, iterations
};

/// {"class_name", "config"}, as config() with the class name writes it.
Optimizer optimizer_from_config(const nlohmann::ordered_json& object);

}  // namespace kolo::keras::detail
