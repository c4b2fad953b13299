// Keras' optimizers. They are not those of <kolo/optimizer.h>: accumulators start at 0, epsilon is 1e-7, the
// rate decays with the number of updates, gradients are clipped one by one.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include <kolo/models/keras/workspace.h>
#include <kolo/optimizer/distributed_optimizer.h>

namespace kolo::keras {

namespace detail {
class OptimizerImpl;
}

/// A number of an optimizer that is a variable of its workspace: f32, or i64. Between batches,
/// on the thread that trains.
class OptimizerNumber {
 public:
  double get() const;
  void set(double value) const;

 private:
  friend class Optimizer;
  OptimizerNumber(Workspace* workspace, Variable variable) : workspace_(workspace), variable_(variable) {}
  Workspace* workspace_;
  Variable variable_;
};

/// A handle by value. Names: sgd rmsprop adagrad adadelta adam adamax nadam.
class Optimizer {
 public:
  Optimizer(const char* name) : Optimizer(std::string(name)) {}
  /// Throws InvalidArgumentError `Unknown optimizer: <n>`, with the nearest known one.
  Optimizer(const std::string& name);
  /// Any of kolo's, which keeps its state when it is compiled again. Its rate is its own business.
  Optimizer(std::shared_ptr<kolo::Optimizer> optimizer);
  template <typename Rule>
  requires(std::derived_from<Rule, kolo::Optimizer>) Optimizer(std::shared_ptr<Rule> optimizer)
      : Optimizer(std::shared_ptr<kolo::Optimizer>(std::move(optimizer))) {}

  /// "SGD", "Adam", …, or the name of kolo's optimizer.
  const std::string& name() const;
  /// Before the first compile they throw FailedPreconditionError; lr, momentum and decay InvalidArgumentError
  /// where the rule has none.
  OptimizerNumber lr() const { return number("lr"); }
  OptimizerNumber momentum() const { return number("momentum"); }
  OptimizerNumber decay() const { return number("decay"); }
  OptimizerNumber iterations() const { return number("iterations"); }
  bool has(const std::string& number_name) const;
  /// JSON of Keras' arguments.
  std::string get_config() const;

  detail::OptimizerImpl& impl() const { return *impl_; }
  const std::optional<DistributedOptimizerOptions>& distributed_options() const { return distributed_; }
  explicit Optimizer(std::shared_ptr<detail::OptimizerImpl> impl) : impl_(std::move(impl)) {}

 private:
  friend Optimizer distributed(Optimizer optimizer, DistributedOptimizerOptions options);
  OptimizerNumber number(const std::string& name) const;
  std::shared_ptr<detail::OptimizerImpl> impl_;
  std::optional<DistributedOptimizerOptions> distributed_;
};

/// Averages gradients over the ranks before they are applied, but after the optimizer has clipped the rank's
/// own. Its numbers are the wrapped one's.
Optimizer distributed(Optimizer optimizer, DistributedOptimizerOptions options = {});

// In each: decay d makes the rate lr / (1 + d · k), k being the updates already applied. clipnorm shortens
// each gradient to this length, then clipvalue cuts its elements; global_clipnorm instead shortens all by one
// factor. 0: none. InvalidArgumentError for numbers out of range.

/// As Keras' SGD takes them.
struct SGDOptions {
  double lr = 0.01;
  double momentum = 0;  // 0 stays 0: there is no variable for it then
  double decay = 0;
  bool nesterov = false;
  double clipnorm = 0, clipvalue = 0, global_clipnorm = 0;
};
/// u = momentum · u − lr · g; v += u, with nesterov v += momentum · u − lr · g.
class SGD : public Optimizer {
 public:
  explicit SGD(const SGDOptions& options = {});
};

/// As Keras' RMSprop takes them.
struct RMSpropOptions {
  double lr = 0.001;
  double rho = 0.9;
  double epsilon = 1e-7;
  double decay = 0;
  double clipnorm = 0, clipvalue = 0, global_clipnorm = 0;
};
/// a = rho · a + (1 − rho) · g²; v −= lr · g / (√a + epsilon).
class RMSprop : public Optimizer {
 public:
  explicit RMSprop(const RMSpropOptions& options = {});
};

/// As Keras' Adagrad takes them.
struct AdagradOptions {
  double lr = 0.01;
  double epsilon = 1e-7;
  double decay = 0;
  double clipnorm = 0, clipvalue = 0, global_clipnorm = 0;
};
/// a += g²; v −= lr · g / (√a + epsilon).
class Adagrad : public Optimizer {
 public:
  explicit Adagrad(const AdagradOptions& options = {});
};

/// As Keras' Adadelta takes them.
struct AdadeltaOptions {
  double lr = 1;
  double rho = 0.95;
  double epsilon = 1e-7;
  double decay = 0;
  double clipnorm = 0, clipvalue = 0, global_clipnorm = 0;
};
/// kolo's AdadeltaOptimizer.
class Adadelta : public Optimizer {
 public:
  explicit Adadelta(const AdadeltaOptions& options = {});
};

/// As Keras' Adam takes them.
struct AdamOptions {
  double lr = 0.001;
  double beta_1 = 0.9;
  double beta_2 = 0.999;
  double epsilon = 1e-7;
  double decay = 0;
  bool amsgrad = false;
  double clipnorm = 0, clipvalue = 0, global_clipnorm = 0;
};
/// kolo's AdamOptimizer; amsgrad: with the largest v so far in the place of v.
class Adam : public Optimizer {
 public:
  explicit Adam(const AdamOptions& options = {});
};

/// As Keras' Adamax takes them.
struct AdamaxOptions {
  double lr = 0.002;
  double beta_1 = 0.9;
  double beta_2 = 0.999;
  double epsilon = 1e-7;
  double decay = 0;
  double clipnorm = 0, clipvalue = 0, global_clipnorm = 0;
};
/// m as Adam's, u = max(beta_2 · u, |g|), v −= lr / (1 − beta_1ᵗ) · m / (u + epsilon).
class Adamax : public Optimizer {
 public:
  explicit Adamax(const AdamaxOptions& options = {});
};

/// As Keras' Nadam takes them.
struct NadamOptions {
  double lr = 0.002;
  double beta_1 = 0.9;
  double beta_2 = 0.999;
  double epsilon = 1e-7;
  double schedule_decay = 0.004;
  double clipnorm = 0, clipvalue = 0, global_clipnorm = 0;
};
/// Adam with Nesterov's momentum, on a schedule of momenta as in Keras.
class Nadam : public Optimizer {
 public:
  explicit Nadam(const NadamOptions& options = {});
};

}  // namespace kolo::keras
