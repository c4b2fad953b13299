// Expected values: rows 53 to 55 of the worked examples, and the formulas of the header worked out by hand.
#include <kolo/optimizer/schedules.h>

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include <kolo/core/base/error.h>
#include <kolo/core/ops/variables.h>
#include <kolo/optimizer/rules.h>

#include "tests/core/run_op.h"
#include "tests/core/shape_check.h"

namespace kolo {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

using Schedule = std::function<Output(const Scope&, Output step)>;

float rate_at(std::int64_t step, const Schedule& schedule) {
  return run_op({Tensor::scalar(step)}, [&](Scope& s, const Outputs& x) { return schedule(s, x[0]); })
      .value<float>();
}

void expect_rate(double expected, std::int64_t step, const Schedule& schedule) {
  EXPECT_NEAR(rate_at(step, schedule), expected, 1e-5 * std::abs(expected)) << "step " << step;
}

// base · (1 + (R − 1) · b / B) in batch b of B = 2 · 5, from 1.
TEST(LearningRateWarmup, RisesLinearlyToTheScaledRate) {
  const auto schedule = [](const Scope& s, Output step) {
    return learning_rate_warmup(s, 0.1, step, {.epochs = 2, .batches_per_epoch = 5, .scale = 4});
  };
  expect_rate(0.1 * (1 + 3 * 0.1), 0, schedule);
  expect_rate(0.1 * (1 + 3 * 0.5), 4, schedule);
  for (const std::int64_t step : {9, 10, 1000}) expect_rate(0.4, step, schedule);
}

TEST(LearningRateWarmup, ScalesByTheNumberOfRanksUnlessTold) {
  expect_rate(0.1, 7, [](const Scope& s, Output step) {
    return learning_rate_warmup(s, 0.1, step, {.epochs = 2, .batches_per_epoch = 5});
  });
}

TEST(LearningRateWarmup, NeedsALength) {
  EXPECT_THAT(
      [] { rate_at(0, [](const Scope& s, Output step) { return learning_rate_warmup(s, 0.1, step, {}); }); },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("0 epochs of 0 batches")));
}

// Row 53 of the worked examples.
TEST(ExponentialDecay, FallsSmoothlyOrInSteps) {
  expect_rate(0.0489897949, 5, [](const Scope& s, Output step) {
    return exponential_decay(s, 0.05, step, {.decay_steps = 10, .decay_rate = 0.96});
  });
  expect_rate(0.1 * std::pow(0.96, 33), 100, [](const Scope& s, Output step) {
    return exponential_decay(s, 0.1, step, {.decay_steps = 3, .decay_rate = 0.96, .staircase = true});
  });
}

TEST(NaturalExpDecay, FallsByPowersOfE) {
  const auto schedule = [](bool staircase) {
    return [=](const Scope& s, Output step) {
      return natural_exp_decay(s, 0.2, step, {.decay_steps = 4, .decay_rate = 0.5, .staircase = staircase});
    };
  };
  expect_rate(0.2 * std::exp(-0.5 * 6 / 4), 6, schedule(false));
  expect_rate(0.2 * std::exp(-0.5), 6, schedule(true));
}

TEST(InverseTimeDecay, FallsHyperbolically) {
  const auto schedule = [](bool staircase) {
    return [=](const Scope& s, Output step) {
      return inverse_time_decay(s, 0.2, step, {.decay_steps = 4, .decay_rate = 0.5, .staircase = staircase});
    };
  };
  expect_rate(0.2 / (1 + 0.5 * 1.5), 6, schedule(false));
  expect_rate(0.2 / 1.5, 6, schedule(true));
}

TEST(PiecewiseConstant, TakesABoundaryAsPartOfWhatIsBeforeIt) {
  const Schedule schedule = [](const Scope& s, Output step) {
    return piecewise_constant(s, step, std::vector<double>{100, 110, 120},
                              std::vector<double>{1.0, 0.1, 0.01, 0.001});
  };
  expect_rate(1.0, 0, schedule);
  expect_rate(1.0, 100, schedule);
  expect_rate(0.1, 105, schedule);
  expect_rate(0.1, 110, schedule);
  expect_rate(0.01, 120, schedule);
  expect_rate(0.001, 999, schedule);
}

TEST(PiecewiseConstant, NeedsOneValueMoreThanBoundaries) {
  EXPECT_THAT(
      [] {
        rate_at(0, [](const Scope& s, Output step) {
          return piecewise_constant(s, step, std::vector<double>{1, 2}, std::vector<double>{1, 2});
        });
      },
      ThrowsMessage<InvalidArgumentError>(
          HasSubstr("The length of boundaries should be 1 less than the length of values")));
}

// Row 54 of the worked examples.
TEST(PolynomialDecay, EndsAtItsEnd) {
  const Schedule schedule = [](const Scope& s, Output step) {
    return polynomial_decay(s, 0.05, step, {.decay_steps = 10, .end_learning_rate = 0.001, .power = 0.5});
  };
  expect_rate(0.0356482323, 5, schedule);
  expect_rate(0.001, 25, schedule);
}

TEST(PolynomialDecay, RisesAgainInCycles) {
  const Schedule schedule = [](const Scope& s, Output step) {
    return polynomial_decay(s, 0.05, step, {.decay_steps = 10, .end_learning_rate = 0.001, .cycle = true});
  };
  expect_rate(0.05, 0, schedule);
  expect_rate(0.049 * 0.5 + 0.001, 5, schedule);
  expect_rate(0.001, 10, schedule);
  expect_rate(0.049 * (1 - 15.0 / 20) + 0.001, 15, schedule);
}

// Row 55 of the worked examples.
TEST(CosineDecay, FallsAlongHalfACosine) {
  const Schedule schedule = [](const Scope& s, Output step) {
    return cosine_decay(s, 1.0, step, {.decay_steps = 1000});
  };
  expect_rate(1, 0, schedule);
  expect_rate(0.853553391, 250, schedule);
  expect_rate(0.5, 500, schedule);
  EXPECT_NEAR(rate_at(1500, schedule), 0, 1e-7);
  expect_rate(0.1 + 0.9 * 0.5, 500, [](const Scope& s, Output step) {
    return cosine_decay(s, 1.0, step, {.decay_steps = 1000, .alpha = 0.1});
  });
}

TEST(CosineDecayRestarts, StartsLongerPeriodsAtLowerRates) {
  const Schedule schedule = [](const Scope& s, Output step) {
    return cosine_decay_restarts(s, 1.0, step,
                                 {.first_decay_steps = 10, .t_mul = 2, .m_mul = 0.5, .alpha = 0.2});
  };
  expect_rate(1, 0, schedule);
  expect_rate(0.8 * 0.5 + 0.2, 5, schedule);
  expect_rate(0.8 * 0.5 + 0.2, 10, schedule);  // period 1: 20 steps from 10
  expect_rate(0.8 * 0.5 * 0.5 + 0.2, 20, schedule);
  expect_rate(0.8 * 0.25 + 0.2, 30, schedule);  // period 2: 40 steps from 30
}

TEST(CosineDecayRestarts, BeginsAPeriodAtItsFirstStep) {
  for (const double t_mul : {1.5, 2.0, 3.0}) {
    double begin = 0, period = 64;
    for (int i = 0; i < 7; ++i, begin += period, period *= t_mul)
      expect_rate(1, static_cast<std::int64_t>(begin), [&](const Scope& s, Output step) {
        return cosine_decay_restarts(s, 1.0, step, {.first_decay_steps = 64, .t_mul = t_mul});
      });
  }
}

struct Restarts {
  explicit Restarts(const CosineRestartsOptions& options)
      : rate(cosine_decay_restarts(Scope(graph), 1.0, step, options)) {}
  float operator()(std::int64_t at) { return session.run(rate, {{step, Tensor::scalar(at)}}).value<float>(); }

  Graph graph;
  const Output step = placeholder(Scope(graph), DType::i64, Shape());
  const Output rate;
  Session session{graph};
};

// Periods of 100/3, 100/7, … steps, and factors that are no binary fractions.
TEST(CosineDecayRestarts, BeginsAPeriodAtItsFirstStepWhateverIsRounded) {
  for (int parts = 3; parts < 50; ++parts) {
    Restarts rate({.first_decay_steps = 100.0 / parts, .t_mul = 1});
    for (int i = 1; i < 50; ++i) ASSERT_EQ(rate(100 * i), 1) << parts << " periods in 100 steps, " << i;
  }
  for (const double t_mul : {1.1, 1.2, 1.3, 1.7, 2.1}) {
    Restarts rate({.first_decay_steps = 1e6, .t_mul = t_mul});
    double begin = 1e6, period = 1e6 * t_mul;
    for (int i = 1; i < 5; ++i, begin += period, period *= t_mul) {
      EXPECT_EQ(rate(std::llround(begin)), 1) << t_mul << ", period " << i;
      EXPECT_LT(rate(std::llround(begin) - 1), 1e-3f) << t_mul << ", period " << i;
    }
  }
}

TEST(CosineDecayRestarts, EndsForEveryFactorAndStep) {
  for (const double t_mul : {std::nextafter(1.0, 2.0), 1.5, 1e300})
    for (const double step : {9e18, std::numeric_limits<double>::infinity()}) {
      Graph graph;
      const Scope s(graph);
      const Output rate = cosine_decay_restarts(s, 1.0, constant(s, Tensor::scalar(step)),
                                                {.first_decay_steps = 1, .t_mul = t_mul, .m_mul = 0.5});
      const auto value = Session(graph).run(rate).value<float>();
      // An infinite step lies in no period; that it ends is all that is asked.
      EXPECT_TRUE(std::isinf(step) || (value >= 0 && value <= 1))
          << value << " with t_mul " << t_mul << " in step " << step;
    }
}

TEST(HostileSchedule, HasTheNumbersOfItsRule) {
  const auto refused = [](const char* op, const Tensor& numbers, const char* text) {
    Graph graph;
    const Scope s(graph);
    const Output rate = constant(s, 1.0f), step = constant(s, Tensor::scalar<std::int64_t>(0));
    EXPECT_THAT(
        [&] {
          s.add(op, {rate, step}, {{"numbers", numbers}});
        },
        ThrowsMessage<InvalidArgumentError>(HasSubstr(text)))
        << op;
  };
  const Tensor none(DType::f64, {0});
  refused("ExponentialDecay", none, "a schedule has 0 numbers; 3 are right");
  refused("PolynomialDecay", none, "a schedule has 0 numbers; 4 are right");
  refused("CosineDecay", Tensor::of<double>({2}, {0, 0}), "must be positive");
  refused("LinearCosineDecay", Tensor::of<float>({4}, {1, 1, 1, 1}), "must be a vector of f64");
  refused("PiecewiseConstant", Tensor::of<double>({3}, {1, 2, 3}), "must be pairs");
  refused("CosineDecayRestarts", Tensor::of<double>({4}, {10, 0.5, 1, 0}), "it must be at least 1");
}

TEST(CosineDecayRestarts, KeepsEqualPeriods) {
  const Schedule schedule = [](const Scope& s, Output step) {
    return cosine_decay_restarts(s, 1.0, step, {.first_decay_steps = 10, .t_mul = 1, .m_mul = 0.5});
  };
  expect_rate(0.25, 20, schedule);
  expect_rate(0.125, 25, schedule);
}

TEST(LinearCosineDecay, FallsAlongACosineAndALine) {
  const Schedule schedule = [](const Scope& s, Output step) {
    return linear_cosine_decay(s, 2.0, step,
                               {.decay_steps = 100, .num_periods = 1.5, .alpha = 0.3, .beta = 0.01});
  };
  expect_rate(2 * ((0.3 + 0.6) * 0.5 * (1 + std::cos(2 * M_PI * 1.5 * 0.4)) + 0.01), 40, schedule);
  expect_rate(2 * (0.3 * 0.5 * (1 + std::cos(2 * M_PI * 1.5)) + 0.01), 400, schedule);
}

struct NamedSchedule {
  std::string name;
  Schedule schedule;
};

std::vector<NamedSchedule> all_schedules() {
  const DecayOptions decay = {.decay_steps = 10, .decay_rate = 0.9};
  return {
      {"exponential_decay",
       [=](const Scope& s, Output step) { return exponential_decay(s, 1.0, step, decay); }},
      {"natural_exp_decay",
       [=](const Scope& s, Output step) { return natural_exp_decay(s, 1.0, step, decay); }},
      {"inverse_time_decay",
       [=](const Scope& s, Output step) { return inverse_time_decay(s, 1.0, step, decay); }},
      {"piecewise_constant",
       [](const Scope& s, Output step) {
         return piecewise_constant(s, step, std::vector<double>{1}, std::vector<double>{1, 2});
       }},
      {"polynomial_decay",
       [](const Scope& s, Output step) { return polynomial_decay(s, 1.0, step, {.decay_steps = 10}); }},
      {"cosine_decay",
       [](const Scope& s, Output step) { return cosine_decay(s, 1.0, step, {.decay_steps = 10}); }},
      {"cosine_decay_restarts",
       [](const Scope& s, Output step) {
         return cosine_decay_restarts(s, 1.0, step, {.first_decay_steps = 10});
       }},
      {"linear_cosine_decay",
       [](const Scope& s, Output step) { return linear_cosine_decay(s, 1.0, step, {.decay_steps = 10}); }},
      {"learning_rate_warmup",
       [](const Scope& s, Output step) {
         return learning_rate_warmup(s, 1.0, step, {.epochs = 1, .batches_per_epoch = 10});
       }},
  };
}

class EverySchedule : public testing::TestWithParam<NamedSchedule> {};

TEST_P(EverySchedule, IsAScalar) {
  expect_shape({{Shape::unknown_rank(), DType::i64}},
               [](Scope& s, const Outputs& x) { return GetParam().schedule(s, x[0]); }, {});
}

TEST_P(EverySchedule, NeedsTheGlobalStep) {
  Graph graph;
  const Scope s(graph);
  EXPECT_THAT(
      [&] { GetParam().schedule(s, {}); },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("global_step is required for " + GetParam().name)));
}

INSTANTIATE_TEST_SUITE_P(Schedules, EverySchedule, testing::ValuesIn(all_schedules()),
                         [](const auto& instance) { return instance.param.name; });

TEST(Schedule, NeedsStepsToDecayOver) {
  EXPECT_THAT([] { rate_at(0, [](const Scope& s, Output step) { return cosine_decay(s, 1.0, step, {}); }); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("decay_steps is 0")));
}

TEST(Schedule, GivesAnOptimizerTheRateOfEachStep) {
  Graph graph;
  Scope s(graph);
  const Variable v(s.named("v"), constant(s, 10.0f));
  const Output step = get_or_create_global_step(s).read();
  GradientDescentOptimizer optimizer(exponential_decay(s, 1.0, step, {.decay_steps = 1, .decay_rate = 0.5}));
  const Operation train = optimizer.minimize(s, v);
  Session session(graph);
  session.run(global_variables_initializer(s));
  for (const float expected : {9.0f, 8.5f, 8.25f}) {
    session.run(train);
    EXPECT_EQ(session.run(v.read()).value<float>(), expected);
  }
}

}  // namespace
}  // namespace kolo
