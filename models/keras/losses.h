// What training makes small: functions of targets t and predictions p, of one shape, that give one value for
// each sample; the loss of a batch is Σ weight · value ÷ the number of weights that are not 0.
#pragma once

#include <concepts>
#include <functional>
#include <initializer_list>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <kolo/core/graph/scope.h>

namespace kolo::keras {

/// [N], or [N,…], which is then averaged over the other axes.
using LossFunction = std::function<Output(const Scope& s, Output t, Output p)>;

/// Formulas of Keras 2.2; ε = 1e-7. Means are over the last axis.
namespace losses {
/// The mean of (t − p)², and of |t − p|.
Output mean_squared_error(const Scope& s, Output t, Output p);
Output mean_absolute_error(const Scope& s, Output t, Output p);
/// 100 · |t − p| / max(|t|, ε).
Output mean_absolute_percentage_error(const Scope& s, Output t, Output p);
/// Of log(max(·, ε) + 1).
Output mean_squared_logarithmic_error(const Scope& s, Output t, Output p);
/// max(1 − t · p, 0), and its square.
Output hinge(const Scope& s, Output t, Output p);
Output squared_hinge(const Scope& s, Output t, Output p);
/// max(0, max((1 − t) p) − Σ t p + 1).
Output categorical_hinge(const Scope& s, Output t, Output p);
/// log(cosh(p − t)).
Output logcosh(const Scope& s, Output t, Output p);
/// p − t · log(p + ε).
Output poisson(const Scope& s, Output t, Output p);
/// Σ t · log(t / p), both clipped to [ε, 1].
Output kullback_leibler_divergence(const Scope& s, Output t, Output p);
/// −Σ of the product of both at length 1.
Output cosine_proximity(const Scope& s, Output t, Output p);
/// p clipped to [ε, 1 − ε].
Output binary_crossentropy(const Scope& s, Output t, Output p);
/// −Σ t · log(clip(p / Σp)).
Output categorical_crossentropy(const Scope& s, Output t, Output p);
/// t: whole numbers, [N,…,1]; the log-softmax of log(clip(p)).
Output sparse_categorical_crossentropy(const Scope& s, Output t, Output p);
}  // namespace losses

/// Of a loss that has a choice.
struct LossOptions {
  bool from_logits = false;  // of the three crossentropies: p are logits; core's stable ops, no clipping
};

/// A value: a name of Keras' (also mse mae mape msle kld), or a function.
class Loss {
 public:
  /// None: the output takes no targets.
  Loss() = default;
  Loss(const char* name) : Loss(std::string(name)) {}
  /// Throws InvalidArgumentError `Unknown loss function: <n>`, with the nearest known one, and for logits of
  /// a loss that takes none.
  Loss(const std::string& name, LossOptions options = {});
  template <typename Function>
  requires(std::invocable<Function, const Scope&, Output, Output>)
      Loss(Function function, std::string name = "loss")
      : name_(std::move(name)), function_(std::move(function)) {}

  explicit operator bool() const { return function_ != nullptr; }
  /// The long name: "mean_squared_error".
  const std::string& name() const { return name_; }
  bool from_logits() const { return from_logits_; }
  bool is_sparse() const { return name_ == "sparse_categorical_crossentropy"; }
  /// [N].
  Output values(const Scope& s, Output t, Output p) const;

 private:
  std::string name_;
  LossFunction function_;
  bool from_logits_ = false;
};

/// One for all outputs, one for each, or by output name: "mse", {"mse", "mae"}, {{"a", "mse"}, {"b", "mae"}}.
struct Losses {
  Losses() = default;
  Losses(const char* name) : one(name) {}
  Losses(const std::string& name) : one(name) {}
  Losses(Loss loss) : one(std::move(loss)) {}
  template <typename Function>
  requires(std::invocable<Function, const Scope&, Output, Output>) Losses(Function function)
      : one(std::move(function)) {}
  Losses(std::initializer_list<Loss> of_each) : list(of_each), is_list(true) {}
  Losses(std::initializer_list<std::pair<const std::string, Loss>> of_names)
      : by_name(of_names), is_map(true) {}
  Losses(std::map<std::string, Loss> of_names) : by_name(std::move(of_names)), is_map(true) {}

  Loss one;
  std::vector<Loss> list;
  std::map<std::string, Loss> by_name;
  bool is_list = false, is_map = false;
};

}  // namespace kolo::keras
