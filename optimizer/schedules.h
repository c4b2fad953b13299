// Learning rates that change from step to step: wherever a Hyperparameter goes, so does their result.
#pragma once

#include <span>
#include <vector>

#include <kolo/optimizer/rule_optimizer.h>

namespace kolo {

// Each gives the rate of the step that is running, a scalar: of the type of `learning_rate` where that is
// computed in the graph, else f32. Below s is the value of `global_step` before the step, a scalar of any
// number type: get_or_create_global_step(scope).read(), which minimize increments. Throw InvalidArgumentError
// `global_step is required for <schedule>.` if it is empty, and for a number out of its range.

/// Of the decays by a rate. Steps are global steps.
struct DecayOptions {
  double decay_steps = 0;  // n, positive
  double decay_rate = 0;   // rate
  bool staircase = false;  // floor(s / n) in the place of s / n
};
/// learning_rate · rate^(s / n).
Output exponential_decay(const Scope& s, Hyperparameter learning_rate, Output global_step,
                         const DecayOptions& options);
/// learning_rate · e^(−rate · s / n).
Output natural_exp_decay(const Scope& s, Hyperparameter learning_rate, Output global_step,
                         const DecayOptions& options);
/// learning_rate / (1 + rate · s / n).
Output inverse_time_decay(const Scope& s, Hyperparameter learning_rate, Output global_step,
                          const DecayOptions& options);

/// values[0] while s ≤ boundaries[0], values[i] while boundaries[i−1] < s ≤ boundaries[i], the last one after
/// that. Throws InvalidArgumentError `The length of boundaries should be 1 less than the length of values`,
/// or if boundaries do not increase.
Output piecewise_constant(const Scope& s, Output global_step, std::span<const double> boundaries,
                          std::span<const double> values);

/// Of polynomial_decay.
struct PolynomialDecayOptions {
  double decay_steps = 0;           // n, positive
  double end_learning_rate = 1e-4;  // end
  double power = 1;
  bool cycle = false;  // n grows to the next multiple that s has not passed: the rate rises again
};
/// (learning_rate − end) · (1 − s / n)^power + end, s at most n.
Output polynomial_decay(const Scope& s, Hyperparameter learning_rate, Output global_step,
                        const PolynomialDecayOptions& options);

/// Of cosine_decay.
struct CosineDecayOptions {
  double decay_steps = 0;  // n, positive
  double alpha = 0;        // what is left in the end, as a part of learning_rate
};
/// learning_rate · ((1 − alpha) · ½(1 + cos(π s / n)) + alpha), s at most n: Loshchilov and Hutter, "SGDR",
/// ICLR 2017, one period.
Output cosine_decay(const Scope& s, Hyperparameter learning_rate, Output global_step,
                    const CosineDecayOptions& options);

/// Of cosine_decay_restarts.
struct CosineRestartsOptions {
  double first_decay_steps = 0;  // n, positive
  double t_mul = 2;              // each period is so much longer than the one before; at least 1
  double m_mul = 1;              // and starts at so much of its rate
  double alpha = 0;              // what is left at the end of a period, as a part of learning_rate
};
/// learning_rate · ((1 − alpha) · ½ · m_mulⁱ · (1 + cos(π · frac)) + alpha), where s is in period i, of n ·
/// t_mulⁱ steps, the part `frac` of it behind it: SGDR with warm restarts.
Output cosine_decay_restarts(const Scope& s, Hyperparameter learning_rate, Output global_step,
                             const CosineRestartsOptions& options);

/// Of linear_cosine_decay.
struct LinearCosineDecayOptions {
  double decay_steps = 0;    // n, positive
  double num_periods = 0.5;  // of the cosine
  double alpha = 0;
  double beta = 0.001;
};
/// learning_rate · ((alpha + (n − s) / n) · ½(1 + cos(2π · num_periods · s / n)) + beta), s at most n: Bello
/// et al., "Neural optimizer search", ICML 2017.
Output linear_cosine_decay(const Scope& s, Hyperparameter learning_rate, Output global_step,
                           const LinearCosineDecayOptions& options);

/// Of learning_rate_warmup.
struct LearningRateWarmup {
  double epochs = 0;             // of the warm-up
  double batches_per_epoch = 0;  // B = epochs · batches_per_epoch, positive
  double scale = 0;              // R, what the rate is multiplied by in the end; 0: the number of ranks
};
/// learning_rate · (1 + (R − 1) · b / B) in batch b = s + 1 of the warm-up, b ≤ B, then learning_rate · R:
/// Goyal et al., "Accurate, large minibatch SGD", 2017. Nothing else scales a rate with the number of ranks.
Output learning_rate_warmup(const Scope& s, Hyperparameter learning_rate, Output global_step,
                            const LearningRateWarmup& warmup);

}  // namespace kolo
