#include <kolo/optimizer/schedules.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include <kolo/core/base/error.h>
#include <kolo/core/base/process.h>
#include <kolo/core/kernels/kernel.h>

namespace kolo {
namespace {

constexpr double kPi = 3.14159265358979323846;
constexpr double kLargest = std::numeric_limits<double>::max();

using Numbers = std::span<const double>;
/// The rate from the first rate, the step and the schedule's numbers.
using Formula = double (*)(double rate, double step, Numbers numbers);

double value_of(const Tensor& scalar) {
  switch (scalar.dtype()) {
    case DType::f32: return scalar.value<float>();
    case DType::f64: return scalar.value<double>();
    case DType::i32: return scalar.value<std::int32_t>();
    default: return static_cast<double>(scalar.value<std::int64_t>());
  }
}

class ScheduleKernel final : public Kernel {
 public:
  ScheduleKernel(Formula formula, Tensor numbers) : formula_(formula), numbers_(std::move(numbers)) {}
  void compute(KernelContext& context) override {
    const Tensor& now = context.output(0);
    const double rate =
        formula_(value_of(context.input(0)), value_of(context.input(1)), numbers_.span<double>());
    if (now.dtype() == DType::f32) *now.data<float>() = static_cast<float>(rate);
    else *now.data<double>() = rate;
  }

 private:
  Formula formula_;
  Tensor numbers_;
};

// A graph from a file may say anything.
void check_numbers(const Tensor& numbers) {
  if (numbers.dtype() != DType::f64 || numbers.shape().rank() != 1)
    throw InvalidArgumentError("the numbers of a schedule are {} {}; they must be a vector of f64",
                               numbers.dtype(), numbers.shape());
}
using CheckNumbers = void (*)(Numbers numbers);

// Of `count` numbers, of which the first is a number of steps.
template <std::size_t count>
void check_steps(Numbers numbers) {
  if (numbers.size() != count)
    throw InvalidArgumentError("a schedule has {} numbers; {} are right", numbers.size(), count);
  if (!(numbers[0] > 0))
    throw InvalidArgumentError("decay_steps of a schedule is {}; it must be positive", numbers[0]);
}

void check_pairs(Numbers numbers) {
  if (numbers.size() % 2 != 0)
    throw InvalidArgumentError("a schedule has {} numbers; they must be pairs of a step and a rate",
                               numbers.size());
}

void check_restarts(Numbers numbers) {
  check_steps<4>(numbers);
  if (!(numbers[1] >= 1))
    throw InvalidArgumentError("t_mul of a schedule is {}; it must be at least 1", numbers[1]);
}

// One op for each schedule. In double, whatever the type: a float's 2²⁴ steps are soon made.
struct RegisterSchedule {
  RegisterSchedule(const char* op, CheckNumbers check, Formula formula)
      : schema(OpSchema(op)
                   .input("learning_rate", {DType::f32, DType::f64})
                   .input("global_step", {DType::i32, DType::i64, DType::f32, DType::f64})
                   .required_attr("numbers", Tensor(DType::f64, {0}))
                   .output("rate")
                   .shape([check](ShapeContext& c) {
                     const Tensor numbers = c.attr<Tensor>("numbers");
                     check_numbers(numbers);
                     check(numbers.span<double>());
                     for (int i = 0; i < 2; ++i)
                       if (!c.input(i).is_compatible_with(Shape()))
                         throw InvalidArgumentError("{} of a schedule is {}; it must be a scalar",
                                                    i == 0 ? "learning_rate" : "global_step", c.input(i));
                     c.set_output(0, Shape());
                   })
                   .no_gradient()),
        kernel(op, "CPU", {DType::f32, DType::f64}, KernelFactory([formula](KernelInit& init) {
                 return std::make_unique<ScheduleKernel>(formula, init.attr<Tensor>("numbers"));
               })) {}
  RegisterOp schema;
  RegisterKernel kernel;
};

// steps, rate, staircase
double periods(double step, Numbers n) { return n[2] != 0 ? std::floor(step / n[0]) : step / n[0]; }

const RegisterSchedule exponential("ExponentialDecay", check_steps<3>,
                                   [](double rate, double step, Numbers n) {
                                     return rate * std::pow(n[1], periods(step, n));
                                   });
const RegisterSchedule natural_exp("NaturalExpDecay", check_steps<3>,
                                   [](double rate, double step, Numbers n) {
                                     return rate * std::exp(-n[1] * periods(step, n));
                                   });
const RegisterSchedule inverse_time("InverseTimeDecay", check_steps<3>,
                                    [](double rate, double step, Numbers n) {
                                      return rate / (1 + n[1] * periods(step, n));
                                    });

// Pairs: after this step, this rate.
const RegisterSchedule piecewise("PiecewiseConstant", check_pairs,
                                 [](double rate, double step, Numbers pairs) {
                                   for (std::size_t i = 0; i < pairs.size(); i += 2)
                                     if (step > pairs[i]) rate = pairs[i + 1];
                                   return rate;
                                 });

// steps, end, power, cycle
const RegisterSchedule polynomial("PolynomialDecay", check_steps<4>, [](double rate, double step, Numbers n) {
  const double steps = n[3] != 0 ? n[0] * std::max(1.0, std::ceil(step / n[0])) : n[0];
  return (rate - n[1]) * std::pow(1 - std::min(step, steps) / steps, n[2]) + n[1];
});

double half_cosine(double part) { return 0.5 * (1 + std::cos(kPi * part)); }

// steps, alpha
const RegisterSchedule cosine("CosineDecay", check_steps<2>, [](double rate, double step, Numbers n) {
  return rate * ((1 - n[1]) * half_cosine(std::min(step, n[0]) / n[0]) + n[1]);
});

// Period i begins at first · (t_mulⁱ − 1) / (t_mul − 1). In closed form: a t_mul just above 1 has as many
// periods as there are steps.
struct Period {
  double number, begin, length;
};

Period period_of(double step, double first, double t_mul) {
  const double log_t = std::log1p(t_mul - 1);
  const auto begin_of = [&](double i) {
    return t_mul == 1 ? first * i : first * (std::expm1(i * log_t) / (t_mul - 1));
  };
  // Capped where a huge t_mul overflows: the period is the same.
  const double x = std::min(step / first * (t_mul - 1), kLargest);
  double i = std::floor(t_mul == 1 ? step / first : std::log1p(x) / log_t);
  // A period of 10/3 steps, or a t_mul of 1.1, is rounded, and so is the step that begins a period: it must
  // not be taken for the end of the one before. Of 10⁹ steps this is a hundredth of one.
  const double reached = step * (1 + 1e-11);
  if (reached < begin_of(i)) --i;
  else if (reached >= begin_of(i + 1)) ++i;
  return {i, begin_of(i), first * std::pow(t_mul, i)};
}

// steps, t_mul, m_mul, alpha
const RegisterSchedule restarts("CosineDecayRestarts", check_restarts,
                                [](double rate, double step, Numbers n) {
                                  const Period period = period_of(step, n[0], n[1]);
                                  const double part = std::max(0.0, step - period.begin) / period.length;
                                  const double amplitude = std::pow(n[2], period.number);
                                  return rate * ((1 - n[3]) * amplitude * half_cosine(part) + n[3]);
                                });

// steps, periods, alpha, beta
const RegisterSchedule linear_cosine(
    "LinearCosineDecay", check_steps<4>, [](double rate, double step, Numbers n) {
      const double s = std::min(step, n[0]);
      return rate * ((n[2] + (n[0] - s) / n[0]) * half_cosine(2 * n[1] * s / n[0]) + n[3]);
    });

// B, R
const RegisterSchedule warmup("LearningRateWarmup", check_steps<2>, [](double rate, double step, Numbers n) {
  return rate * (1 + (n[1] - 1) * std::min((step + 1) / n[0], 1.0));
});

void check_step(const char* function, const Output& global_step) {
  if (!global_step) throw InvalidArgumentError("global_step is required for {}.", function);
}

Output schedule(const Scope& s, const char* op, const char* function, const Hyperparameter& rate,
                Output global_step, const std::vector<double>& numbers) {
  check_step(function, global_step);
  if (!(numbers[0] > 0))
    throw InvalidArgumentError("{}: decay_steps is {}; it must be positive", function, numbers[0]);
  const Output first = rate.in_graph(s, DType::f32, "learning_rate");
  const Shape shape({static_cast<std::int64_t>(numbers.size())});
  return s.add(op, {first, global_step}, {{"numbers", Tensor::of<double>(shape, Numbers(numbers))}});
}

Output decay(const Scope& s, const char* op, const char* function, const Hyperparameter& rate,
             Output global_step, const DecayOptions& options) {
  return schedule(s, op, function, rate, global_step,
                  {options.decay_steps, options.decay_rate, options.staircase ? 1.0 : 0.0});
}

}  // namespace

Output exponential_decay(const Scope& s, Hyperparameter learning_rate, Output global_step,
                         const DecayOptions& options) {
  return decay(s, "ExponentialDecay", "exponential_decay", learning_rate, global_step, options);
}

Output natural_exp_decay(const Scope& s, Hyperparameter learning_rate, Output global_step,
                         const DecayOptions& options) {
  return decay(s, "NaturalExpDecay", "natural_exp_decay", learning_rate, global_step, options);
}

Output inverse_time_decay(const Scope& s, Hyperparameter learning_rate, Output global_step,
                          const DecayOptions& options) {
  return decay(s, "InverseTimeDecay", "inverse_time_decay", learning_rate, global_step, options);
}

Output piecewise_constant(const Scope& s, Output global_step, std::span<const double> boundaries,
                          std::span<const double> values) {
  check_step("piecewise_constant", global_step);
  if (boundaries.size() + 1 != values.size())
    throw InvalidArgumentError(
        "The length of boundaries should be 1 less than the length of values; there are {} boundaries and {} "
        "values",
        boundaries.size(), values.size());
  if (!std::is_sorted(boundaries.begin(), boundaries.end()))
    throw InvalidArgumentError("piecewise_constant: the boundaries must increase");
  std::vector<double> pairs;
  for (std::size_t i = 0; i < boundaries.size(); ++i)
    pairs.insert(pairs.end(), {boundaries[i], values[i + 1]});
  const Shape shape({static_cast<std::int64_t>(pairs.size())});
  const Output first = Hyperparameter(values[0]).scalar(s, DType::f32, "first_value");
  return s.add("PiecewiseConstant", {first, global_step},
               {{"numbers", Tensor::of<double>(shape, Numbers(pairs))}});
}

Output polynomial_decay(const Scope& s, Hyperparameter learning_rate, Output global_step,
                        const PolynomialDecayOptions& options) {
  return schedule(s, "PolynomialDecay", "polynomial_decay", learning_rate, global_step,
                  {options.decay_steps, options.end_learning_rate, options.power, options.cycle ? 1.0 : 0.0});
}

Output cosine_decay(const Scope& s, Hyperparameter learning_rate, Output global_step,
                    const CosineDecayOptions& options) {
  return schedule(s, "CosineDecay", "cosine_decay", learning_rate, global_step,
                  {options.decay_steps, options.alpha});
}

Output cosine_decay_restarts(const Scope& s, Hyperparameter learning_rate, Output global_step,
                             const CosineRestartsOptions& options) {
  if (!(options.t_mul >= 1))
    throw InvalidArgumentError("cosine_decay_restarts: t_mul is {}; it must be at least 1", options.t_mul);
  return schedule(s, "CosineDecayRestarts", "cosine_decay_restarts", learning_rate, global_step,
                  {options.first_decay_steps, options.t_mul, options.m_mul, options.alpha});
}

Output linear_cosine_decay(const Scope& s, Hyperparameter learning_rate, Output global_step,
                           const LinearCosineDecayOptions& options) {
  return schedule(s, "LinearCosineDecay", "linear_cosine_decay", learning_rate, global_step,
                  {options.decay_steps, options.num_periods, options.alpha, options.beta});
}

Output learning_rate_warmup(const Scope& s, Hyperparameter learning_rate, Output global_step,
                            const LearningRateWarmup& warmup) {
  if (!(warmup.epochs > 0 && warmup.batches_per_epoch > 0))
    throw InvalidArgumentError("learning_rate_warmup: {} epochs of {} batches; both must be positive",
                               warmup.epochs, warmup.batches_per_epoch);
  if (!(warmup.scale >= 0))
    throw InvalidArgumentError(
        "learning_rate_warmup: scale is {}; it must be positive, or 0 for the number of ranks", warmup.scale);
  return schedule(
      s, "LearningRateWarmup", "learning_rate_warmup", learning_rate, global_step,
      {warmup.epochs * warmup.batches_per_epoch, warmup.scale > 0 ? warmup.scale : process().size});
}

}  // namespace kolo
