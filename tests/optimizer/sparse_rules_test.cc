// Gradients that are slices: each rule against a plain loop over the rows, in double.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <memory>

#include <kolo/core/base/error.h>
#include <kolo/core/graph/indexed_slices.h>
#include <kolo/core/ops/indexing.h>
#include <kolo/optimizer/rules.h>

#include "tests/optimizer/small_training.h"

namespace kolo {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr std::int64_t kRows = 4, kWidth = 3;

struct Slices {
  std::vector<std::int64_t> indices;
  std::vector<double> values;
};

double start_of(std::int64_t i) { return std::cos(static_cast<double>(i)); }

// Two steps, with a row that is listed twice, one that is listed in both and one in neither.
std::vector<Slices> two_steps() {
  std::vector<Slices> steps = {{{2, 0, 2}, {}}, {{1, 2}, {}}};
  for (Slices& step : steps)
    for (std::size_t i = 0; i < step.indices.size() * kWidth; ++i)
      step.values.push_back(std::sin(1.3 * static_cast<double>(i) + static_cast<double>(step.indices[0])));
  return steps;
}

// A graph in which `optimizer` trains one table by slices that are fed.
class Table {
 public:
  explicit Table(Optimizer& optimizer) {
    Tensor start(DType::f64, {kRows, kWidth});
    for (std::int64_t i = 0; i < start.elements(); ++i) start.data<double>()[i] = start_of(i);
    table_ = Variable(s_.named("table"), constant(s_, start));
    const GradientPair pair = {
        to_dense(s_, {.values = values_, .indices = indices_, .dense_shape = table_.shape()}), table_};
    step_ = optimizer.apply_gradients(s_, {&pair, 1});
    session_ = std::make_unique<Session>(graph_);
    session_->run(global_variables_initializer(s_));
  }

  void step(const Slices& slices) {
    const auto count = static_cast<std::int64_t>(slices.indices.size());
    session_->run(step_,
                  {{indices_, Tensor::of<std::int64_t>({count}, slices.indices)},
                   {values_, Tensor::of<double>({count, kWidth}, std::span<const double>(slices.values))}});
    record_update_checks(table_);
  }
  std::vector<double> values() { return elements<double>(session_->run(table_.read())); }
  std::vector<double> slot(Optimizer& optimizer, const std::string& name) {
    return elements<double>(session_->run(optimizer.find_slot(table_, name).read()));
  }
  bool has_op(const std::string& op) const {
    for (int id = 0; id < graph_.num_nodes(); ++id)
      if (graph_.node(id).op() == op) return true;
    return false;
  }

 private:
  Graph graph_;
  Scope s_{graph_};
  Output indices_ = placeholder(s_, DType::i64, {-1});
  Output values_ = placeholder(s_, DType::f64, {-1, kWidth});
  Variable table_;
  Operation step_;
  std::unique_ptr<Session> session_;
};

// How one element takes a gradient g: the formulas of the optimizers' headers.
using ElementRule = std::function<void(double& v, std::vector<double>& slots, double g)>;

struct Rule {
  std::string op;
  std::function<std::unique_ptr<Optimizer>()> make;
  std::vector<std::string> slots;
  std::vector<double> starts;  // of the slots
  ElementRule apply;
};

double root_of(double n) { return std::pow(n, 0.5); }

std::vector<Rule> rules() {
  return {
      {"GradientDescent",
       [] { return std::make_unique<GradientDescentOptimizer>(0.5); },
       {},
       {},
       [](double& v, auto&, double g) { v -= 0.5 * g; }},
      {"Momentum",
       [] { return std::make_unique<MomentumOptimizer>(0.5, 0.9); },
       {"momentum"},
       {0},
       [](double& v, auto& s, double g) {
         s[0] = 0.9 * s[0] + g;
         v -= 0.5 * s[0];
       }},
      {"Nesterov",
       [] { return std::make_unique<MomentumOptimizer>(0.5, 0.9, true); },
       {"momentum"},
       {0},
       [](double& v, auto& s, double g) {
         s[0] = 0.9 * s[0] + g;
         v -= 0.5 * g + 0.5 * 0.9 * s[0];
       }},
      {"Adagrad",
       [] { return std::make_unique<AdagradOptimizer>(0.5); },
       {"accumulator"},
       {0.1},
       [](double& v, auto& s, double g) {
         s[0] += g * g;
         v -= 0.5 * g / std::sqrt(s[0]);
       }},
      {"RMSProp",
       [] {
         return std::make_unique<RMSPropOptimizer>(
             RMSPropOptions{.learning_rate = 0.5, .momentum = 0.3, .epsilon = 1e-3});
       },
       {"rms", "momentum"},
       {1, 0},
       [](double& v, auto& s, double g) {
         s[0] += (g * g - s[0]) * (1 - 0.9);
         s[1] = 0.3 * s[1] + 0.5 * g / std::sqrt(s[0] + 1e-3);
         v -= s[1];
       }},
      {"CenteredRMSProp",
       [] {
         return std::make_unique<RMSPropOptimizer>(
             RMSPropOptions{.learning_rate = 0.5, .momentum = 0.3, .epsilon = 1e-3, .centered = true});
       },
       {"rms", "mg", "momentum"},
       {1, 0, 0},
       [](double& v, auto& s, double g) {
         s[0] += (g * g - s[0]) * (1 - 0.9);
         s[1] += (g - s[1]) * (1 - 0.9);
         s[2] = 0.3 * s[2] + 0.5 * g / std::sqrt(s[0] - s[1] * s[1] + 1e-3);
         v -= s[2];
       }},
      {"Adadelta",
       [] { return std::make_unique<AdadeltaOptimizer>(0.5); },
       {"accum", "accum_update"},
       {0, 0},
       [](double& v, auto& s, double g) {
         s[0] = 0.95 * s[0] + 0.05 * g * g;
         const double u = std::sqrt(s[1] + 1e-8) / std::sqrt(s[0] + 1e-8) * g;
         v -= 0.5 * u;
         s[1] = 0.95 * s[1] + 0.05 * u * u;
       }},
      {"Ftrl",
       [] {
         return std::make_unique<FtrlOptimizer>(
             FtrlOptions{.learning_rate = 0.5, .l1 = 0.3, .l2 = 0.2, .l2_shrinkage = 0.1});
       },
       {"accum", "linear"},
       {0.1, 0},
       [](double& v, auto& s, double g) {
         const double n = s[0] + g * g;
         s[1] += g + 2 * 0.1 * v - (root_of(n) - root_of(s[0])) / 0.5 * v;
         const double sign = s[1] > 0 ? 1 : -1;
         v = std::abs(s[1]) > 0.3 ? (sign * 0.3 - s[1]) / (root_of(n) / 0.5 + 2 * 0.2) : 0;
         s[0] = n;
       }},
  };
}

void expect_near(const std::vector<double>& found, const std::vector<double>& expected,
                 const std::string& what) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i)
    EXPECT_NEAR(found[i], expected[i], 1e-12) << what << ' ' << i;
}

class SparseRule : public ::testing::TestWithParam<Rule> {};

TEST_P(SparseRule, TouchesTheListedRowsAloneAfterSummingThoseListedTwice) {
  const Rule& rule = GetParam();
  const auto optimizer = rule.make();
  Table table(*optimizer);
  EXPECT_TRUE(table.has_op("SparseApply" + rule.op));
  std::vector<double> v(kRows * kWidth);
  std::vector<std::vector<double>> slots(v.size(), rule.starts);  // by element
  for (std::size_t i = 0; i < v.size(); ++i) v[i] = start_of(static_cast<std::int64_t>(i));
  for (const Slices& step : two_steps()) {
    table.step(step);
    std::map<std::int64_t, std::vector<double>> sums;
    for (std::size_t k = 0; k < step.indices.size(); ++k) {
      auto& sum = sums.try_emplace(step.indices[k], kWidth, 0.0).first->second;
      for (std::int64_t c = 0; c < kWidth; ++c) sum[c] += step.values[k * kWidth + c];
    }
    for (const auto& [row, g] : sums)
      for (std::int64_t c = 0; c < kWidth; ++c)
        rule.apply(v[row * kWidth + c], slots[row * kWidth + c], g[c]);
  }
  expect_near(table.values(), v, "value");
  for (std::size_t k = 0; k < rule.slots.size(); ++k) {
    std::vector<double> expected;
    for (const auto& element : slots) expected.push_back(element[k]);
    expect_near(table.slot(*optimizer, rule.slots[k]), expected, rule.slots[k]);
  }
}

INSTANTIATE_TEST_SUITE_P(Rules, SparseRule, ::testing::ValuesIn(rules()),
                         [](const auto& instance) { return instance.param.op; });

TEST(SparseAdam, MovesAllRowsAsWithAGradientOfZero) {
  AdamOptimizer optimizer(0.5);
  Table table(optimizer);
  std::vector<double> v(kRows * kWidth), m(v.size(), 0), w(v.size(), 0);
  for (std::size_t i = 0; i < v.size(); ++i) v[i] = start_of(static_cast<std::int64_t>(i));
  double power1 = 1, power2 = 1;
  for (const Slices& step : two_steps()) {
    table.step(step);
    std::vector<double> g(v.size(), 0);
    for (std::size_t k = 0; k < step.indices.size(); ++k)
      for (std::int64_t c = 0; c < kWidth; ++c)
        g[step.indices[k] * kWidth + c] += step.values[k * kWidth + c];
    power1 *= 0.9, power2 *= 0.999;
    for (std::size_t i = 0; i < v.size(); ++i) {
      m[i] += (g[i] - m[i]) * (1 - 0.9);
      w[i] += (g[i] * g[i] - w[i]) * (1 - 0.999);
      v[i] -= 0.5 * std::sqrt(1 - power2) / (1 - power1) * m[i] / (std::sqrt(w[i]) + 1e-8);
    }
  }
  expect_near(table.values(), v, "value");
  expect_near(table.slot(optimizer, "m"), m, "m");
}

TEST(SparseUpdate, ChangesNothingWhereAnIndexIsOutOfRange) {
  MomentumOptimizer optimizer(0.5, 0.9);
  Table table(optimizer);
  const std::vector<double> before = table.values();
  EXPECT_THAT(
      [&] {
        table.step({{0, 4}, std::vector<double>(6, 1.0)});
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("Index 4 at offset 1 in indices is out of range")));
  EXPECT_EQ(table.values(), before);
}

TEST(SparseUpdate, ChangesNothingWithoutIndices) {
  AdagradOptimizer optimizer(0.5);
  Table table(optimizer);
  const std::vector<double> before = table.values();
  table.step({{}, {}});
  EXPECT_EQ(table.values(), before);
}

TEST(SparseUpdate, ComesOutOfTheGradientOfAnEmbedding) {
  Graph graph;
  Scope s(graph);
  const Variable table(s.named("table"), constant(s, Tensor::of<float>({3, 1}, {1, 2, 3})));
  const Output rows = embedding_lookup(s, table, constant(s, Tensor::of<std::int32_t>({2}, {2, 2})));
  AdagradOptimizer optimizer(1.0);
  const Operation step = optimizer.minimize(s, rows);
  Session session(graph);
  session.run(global_variables_initializer(s));
  session.run(step);
  // The rows' gradients, 1 each, are summed first: 2 / √(0.1 + 4).
  EXPECT_THAT(elements<float>(session.run(table.read())),
              ElementsAre(1, 2, ::testing::FloatNear(3 - 2 / std::sqrt(4.1f), 1e-6f)));
}

}  // namespace
}  // namespace kolo
