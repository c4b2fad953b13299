// What a loop's body does to variables, beside what the rest of the step does to them.
#include <kolo/core/runtime/loops.h>

#include <gmock/gmock.h>

#include <random>

#include <kolo/core/base/log.h>
#include <kolo/core/ops/control_flow.h>
#include <kolo/core/ops/linalg.h>
#include <kolo/core/ops/shapes.h>
#include <kolo/core/ops/training.h>
#include <kolo/core/ops/variables.h>
#include <kolo/core/runtime/session.h>
#include <tests/core/counted_loop.h>

namespace kolo {
namespace {

using testing::counted_loop;
using ::testing::ElementsAre;

struct LoopWithVariable : ::testing::Test {
  Output number(const Scope& at, double value) { return fill(at, DType::f64, Shape{}, value); }
  Output row(double a, double b) { return constant(s, Tensor::of<double>({2}, {{a, b}})); }
  // A loop that adds `amount` to `variable`, `times` times.
  Output adding(const Variable& variable, int times, double amount) {
    return counted_loop(
        s, times, [&](const Scope& b) -> Operation { return assign_add(b, variable, number(b, amount)); });
  }
  std::vector<double> run(const Outputs& outputs) {
    Session session(graph);
    session.run(global_variables_initializer(s));
    std::vector<double> values;
    for (const Tensor& value : session.run(std::vector<Fetch>(outputs.begin(), outputs.end())))
      values.push_back(value.value<double>());
    return values;
  }

  Graph graph;
  Scope s{graph};
  const Variable v{s.named("v"), number(s, 1)};
};

TEST_F(LoopWithVariable, LeavesWhatWasReadBeforeItAsItWas) {
  const Output old = mul(s, v, number(s, 1));
  const Output loop = adding(v, 3, 10);
  EXPECT_THAT(run({identity(s.control_dependencies({loop}), old)}), ElementsAre(1));
}

TEST_F(LoopWithVariable, LeavesAFetchOfTheVariableMadeBeforeItAsItWas) {
  const Output loop = adding(v, 3, 10);
  EXPECT_THAT(run({v.read(), loop}), ElementsAre(1, 3));
}

TEST_F(LoopWithVariable, IsSeenByWhatReadsTheVariableAfterIt) {
  const Output loop = adding(v, 3, 10);
  EXPECT_THAT(run({mul(s, v, number(s, 2)), loop}), ElementsAre(62, 3));
}

TEST_F(LoopWithVariable, TakesItsTurnAmongTheUpdatesOfTheVariable) {
  const Output doubled = assign(s, v, mul(s, v, number(s, 2)));
  const Output loop = adding(v, 2, 10), another = adding(v, 3, 100);
  const Output last = assign(s, v, mul(s, v, number(s, 2)));
  EXPECT_THAT(run({last, doubled, loop, another}), ElementsAre((2 + 20 + 300) * 2, 2, 2, 3));
}

TEST_F(LoopWithVariable, SeesInEachIterationWhatItMadeOfTheVariable) {
  const Variable sum(s.named("sum"), number(s, 0));
  const Output loop = counted_loop(s, 3, [&](const Scope& b) -> Operation {
    const Output before = assign_add(b, sum, mul(b, v, number(b, 100)));
    const Output update = assign_add(b, v, number(b, 1));
    const Output after = assign_add(b, sum, mul(b, v, number(b, 1)));
    return group(b, {before, update, after});
  });
  EXPECT_THAT(run({sum.read(), identity(s, sum.read()), loop}),
              ElementsAre(0, 100 * (1 + 2 + 3) + (2 + 3 + 4), 3));
}

TEST_F(LoopWithVariable, BeginsWithWhatTheVariableWasThatItUpdates) {
  const Outputs finals = while_loop(
      s, [&](const Scope& c, const Outputs& x) { return less(c, x[0], number(c, 3)); },
      [&](const Scope& b, const Outputs& x) {
        const Operation update = assign_add(b, v, number(b, 10));
        const Scope updated = b.control_dependencies({update});
        return Outputs{add(updated, x[0], number(b, 1)), identity(updated, x[1])};
      },
      {number(s, 0), v});
  EXPECT_THAT(run({finals[1], mul(s, v, number(s, 1))}), ElementsAre(1, 31));
}

TEST_F(LoopWithVariable, EndsWithWhatTheVariableWasInTheLastIteration) {
  const Outputs finals = while_loop(
      s, [&](const Scope& c, const Outputs& x) { return less(c, x[0], number(c, 3)); },
      [&](const Scope& b, const Outputs& x) {
        const Output kept = identity(b, v);
        const Operation update = assign_add(b, v, number(b, 10));
        return Outputs{add(b.control_dependencies({update}), x[0], number(b, 1)), kept};
      },
      {number(s, 0), number(s, 0)});
  EXPECT_THAT(run({finals[1]}), ElementsAre(21));
}

TEST_F(LoopWithVariable, UsesAReadMadeBeforeItAsItWas) {
  const Variable sum(s.named("sum"), number(s, 0));
  const Output old = identity(s, v);
  const Output loop = counted_loop(s, 3, [&](const Scope& b) -> Operation {
    return group(b, {assign_add(b, v, number(b, 10)), assign_add(b, sum, old), assign_add(b, sum, v)});
  });
  EXPECT_THAT(run({identity(s, sum), loop}), ElementsAre(3 * 1 + (11 + 21 + 31), 3));
}

TEST_F(LoopWithVariable, KeepsAReadOfTheIterationItsUpdatesChange) {
  const Variable sum(s.named("sum"), number(s, 0));
  const Output loop = counted_loop(s, 3, [&](const Scope& b) -> Operation {
    const Output old = identity(b, v), updated = assign_add(b, v, number(b, 10));
    const Output inner = counted_loop(b, 2, [&](const Scope& i) -> Operation {
      return group(i, {assign_add(i, v, number(i, 1)), assign_add(i, sum, sub(i, updated, old))});
    });
    return inner;
  });
  EXPECT_THAT(run({identity(s, sum), loop}), ElementsAre(3 * 2 * 10, 3));
}

TEST_F(LoopWithVariable, MayUpdateItInABranchOfALoopInside) {
  const Output old = mul(s, v, number(s, 1));
  const Output loop = counted_loop(s, 2, [&](const Scope& outer) -> Operation {
    return counted_loop(outer, 3,
                        [&](const Scope& inner) {
                          return cond(
                              inner, less(inner, v, number(inner, 41)),
                              [&](const Scope& b) -> Operation { return assign_add(b, v, number(b, 10)); },
                              [&](const Scope& b) -> Operation { return assign_add(b, v, number(b, 1)); });
                        })
        .node;
  });
  const Output newer = mul(s, v, number(s, 1));
  EXPECT_THAT(run({identity(s.control_dependencies({loop}), old), newer}), ElementsAre(1, 43));
}

TEST_F(LoopWithVariable, IsOrderedForUpdatesOfRowsAndOfOptimizersToo) {
  const Variable rows(s.named("rows"), row(1, 2));
  const Output old = mul(s, rows, number(s, 1));
  const Output loop = counted_loop(s, 2, [&](const Scope& b) -> Operation {
    const Output scattered =
        scatter_add(b, rows, constant(b, Tensor::of<std::int32_t>({1}, {1})), fill(b, DType::f64, {1}, 5));
    const Output applied =
        apply_update(b, {.rule = "GradientDescent", .variable = rows, .slots = {}, .scalars = {number(b, 1)}},
                     fill(b, DType::f64, {2}, -100));
    return group(b, {scattered, applied});
  });
  const Output newer = mul(s, rows, number(s, 1));
  Session session(graph);
  session.run(global_variables_initializer(s));
  const auto values = session.run({newer, identity(s.control_dependencies({loop}), old)});
  EXPECT_THAT(values[0].span<double>(), ElementsAre(201, 212));
  EXPECT_THAT(values[1].span<double>(), ElementsAre(1, 2));
}

// By passes: what is left of the products are the other's feeds.
TEST_F(LoopWithVariable, KeepsResultsApartThatAreFeedsOfEachOther) {
  const Outputs finals = while_loop(
      s, [&](const Scope& c, const Outputs& x) { return less(c, x[0], number(c, 5)); },
      [&](const Scope& b, const Outputs& x) {
        return Outputs{add(b, x[0], number(b, 1)), mul(b, x[2], number(b, 1)), reshape(b, x[3], Shape{}),
                       add(b, x[1], x[3])};
      },
      {number(s, 0), number(s, 1), number(s, 2), number(s, 3)});
  double a = 1, b = 2, c = 3;
  for (int i = 0; i < 5; ++i) {
    const double sum = a + c;
    a = b;
    b = c;
    c = sum;
  }
  EXPECT_THAT(run({finals[1], finals[2], finals[3]}), ElementsAre(a, b, c));
}

// Ops on two variables, some of them in loops, and what they give one after the other, in the order in which
// they were made.
class RandomProgram {
 public:
  /// gpus: ops and variables are on a CPU or on one of two GPUs.
  RandomProgram(unsigned seed, bool gpus) : random_(seed), gpus_(gpus) {
    for (int i = 0; i < 20; ++i) add_op();
  }

  void expect_its_values(const SessionConfig& config) {
    Session session(graph_, config);
    session.run(global_variables_initializer(Scope(graph_)));
    const auto results = session.run(std::vector<Fetch>(values_.begin(), values_.end()));
    for (std::size_t i = 0; i < values_.size(); ++i)
      EXPECT_EQ(*results[i].data<double>(), expected_[i]) << values_[i].name();
    for (int v = 0; v < 2; ++v) EXPECT_EQ(session.run(variables_[v].read()).value<double>(), now_[v]);
  }

 private:
  int below(int count) { return static_cast<int>(random_() % static_cast<unsigned>(count)); }

  Scope scope() {
    const char* const devices[] = {"/cpu:0", "/gpu:0", "/gpu:1"};
    return gpus_ ? Scope(graph_).device(devices[below(3)]) : Scope(graph_);
  }
  Variable variable(const char* name, double value) {
    return {scope().named(name), fill(Scope(graph_), DType::f64, Shape{}, value)};
  }

  // A variable, which is read by who uses it, or a value.
  struct Operand {
    Output output;
    double value;
  };
  Operand operand() {
    const int v = below(2);
    if (values_.empty() || below(3) == 0) return {variables_[v].read(), now_[v]};
    const auto i = static_cast<std::size_t>(below(static_cast<int>(values_.size())));
    return {values_[i], expected_[i]};
  }
  void add_value(Output output, double value) {
    values_.push_back(output);
    expected_.push_back(value);
  }

  void add_op() {
    const Operand a = operand(), b = operand();
    const int v = below(2);
    const Scope s = scope();
    double& now = now_[v];
    switch (below(7)) {
      case 0: return add_value(identity(s, a.output), a.value);
      case 1: return add_value(reshape(s, a.output, Shape{}), a.value);
      case 2: return add_value(sub(s, a.output, b.output), a.value - b.value);
      case 3: return add_value(assign(s, variables_[v], a.output), now = a.value);
      case 4: return add_value(assign_sub(s, variables_[v], a.output), now -= a.value);
      case 5: return add_value(assign_add(s, variables_[v], a.output), now += a.value);
      default: return add_loop(v, a);
    }
  }

  // Its body reads the variable anew in each iteration, and what was read before it as it was.
  void add_loop(int v, const Operand& a) {
    const bool reads_itself = a.output == variables_[v].read();
    const Output loop = counted_loop(
        scope(), 2, [&](const Scope& b) -> Operation { return assign_add(b, variables_[v], a.output); });
    for (int i = 0; i < 2; ++i) now_[v] += reads_itself ? now_[v] : a.value;
    add_value(loop, 2);
  }

  std::mt19937 random_;
  const bool gpus_;
  Graph graph_;
  const Variable variables_[2] = {variable("v", 3), variable("w", 5)};
  double now_[2] = {3, 5};
  Outputs values_;
  std::vector<double> expected_;
};

class ReadsAndUpdates : public ::testing::TestWithParam<bool> {
 protected:
  ReadsAndUpdates() { set_log_level(LogLevel::error); }  // each session tells of its GPUs
  ~ReadsAndUpdates() override { set_log_level(LogLevel::info); }
};

TEST_P(ReadsAndUpdates, GiveWhatOneAfterTheOtherGives) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    RandomProgram program(seed, GetParam());
    for (const OptimizerLevel level : {OptimizerLevel::l0, OptimizerLevel::l1}) {
      SessionConfig config = {.inter_op_parallelism_threads = 3, .use_per_session_threads = true};
      config.graph_options.optimizer_level = level;
      if (GetParam()) config.virtual_gpus.assign(2, {.total_bytes = std::int64_t{1} << 30});
      program.expect_its_values(config);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(OnDevices, ReadsAndUpdates, ::testing::Bool(),
                         [](const auto& instance) { return instance.param ? "CpuAndGpus" : "Cpu"; });

}  // namespace
}  // namespace kolo
