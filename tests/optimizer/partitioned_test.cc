// Every optimizer trains the parts of a table as it trains the whole one.
#include <gmock/gmock.h>

#include <algorithm>

#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/indexing.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/ops/partitioned_variables.h>
#include <kolo/core/ops/reductions.h>
#include <kolo/core/runtime/session.h>
#include <kolo/core/training/checkpoint_files.h>
#include <kolo/core/training/monitored_session.h>
#include <kolo/core/training/saver.h>
#include <kolo/optimizer/registry.h>

#include "tests/core/training/temporary_directory.h"

namespace kolo {
namespace {

using testing::FloatNear;
using testing::HasSubstr;
using testing::Not;
using testing::Pointwise;

const Shape kShape = {7, 2};

Tensor first_values() {
  Tensor value(DType::f32, kShape);
  for (std::int64_t i = 0; i < value.elements(); ++i)
    value.data<float>()[i] = 0.1F * static_cast<float>(i) - 0.5F;
  return value;
}

// A table of 7 rows in `parts` parts, or whole (0), of which a step uses a few, or all.
struct Training {
  Training(const std::string& optimizer, int parts, bool sparse) {
    Output rows;
    if (parts == 0) {
      whole = Variable(s.named("e"), constant(s, first_values()));
      rows = sparse ? embedding_lookup(s, whole, ids) : whole.read();
    } else {
      std::int64_t first = 0;
      e = partitioned_variable(
          s.named("e"), kShape,
          [&](const Scope& scope, const Shape& part) {
            first += part.dim(0);
            return constant(scope, first_values().rows(first - part.dim(0), first));
          },
          fixed_size(parts));
      rows = sparse ? embedding_lookup(s, e, ids, PartitionStrategy::div) : e.read(s);
    }
    const Output loss = reduce_sum(s, square(s, add(s, rows, constant(s, 0.3F))));
    train = make_optimizer(optimizer, {.learning_rate = 0.1})->minimize(s, loss);
    init = global_variables_initializer(s);
  }
  Tensor value(Session& session) { return session.run(whole ? whole.read() : e.read(s)); }
  Tensor trained(int steps) {
    Session session(graph);
    session.run(init);
    step(session, steps);
    return value(session);
  }
  void step(Session& session, int steps) {
    for (int i = 0; i < steps; ++i) session.run(train, {{ids, Tensor::of<std::int32_t>({4}, {6, i, 6, 3})}});
  }

  Graph graph;
  Scope s{graph};
  Output ids = placeholder(s, DType::i32, {-1});
  PartitionedVariable e;
  Variable whole;
  Operation train, init;
};

// All but those that go by the norm of what they update: of a part they take the part's.
std::vector<std::string> element_wise_optimizers() {
  std::vector<std::string> names = registered_optimizers();
  std::erase_if(names, [](const std::string& name) {
    return name == "lars" || name == "lamb" || !make_optimizer(name)->is_element_wise();
  });
  return names;
}

TEST(PartitionedVariables, TrainAsAWholeOne) {
  const auto names = element_wise_optimizers();
  ASSERT_GE(names.size(), 8U);
  for (const std::string& name : names)
    for (const bool sparse : {false, true}) {
      const Tensor whole = Training(name, 0, sparse).trained(3);
      for (const int parts : {1, 3}) {
        const Tensor cut = Training(name, parts, sparse).trained(3);
        EXPECT_THAT(cut.span<float>(), Pointwise(FloatNear(1e-6F), whole.span<float>()))
            << name << (sparse ? ", sparse, " : ", dense, ") << parts << " parts";
      }
    }
}

TEST(PartitionedVariables, TrainWithEveryOptimizer) {
  for (const std::string& name : registered_optimizers())
    for (const bool sparse : {false, true}) {
      const Tensor trained = Training(name, 2, sparse).trained(2), first = first_values();
      EXPECT_NE(trained.span<float>()[13], first.span<float>()[13]) << name;
    }
}

TEST(PartitionedVariables, GoOnFromACheckpointWithAnotherNumberOfParts) {
  const TemporaryDirectory folder;
  const std::string path = folder / "model.ckpt";
  for (const char* const name : {"momentum", "adam"})
    for (const bool sparse : {false, true}) {
      Training three(name, 3, sparse), two(name, 2, sparse), whole(name, 0, sparse);
      Session saved(three.graph);
      saved.run(three.init);
      three.step(saved, 2);
      Saver(three.graph).save(saved, path);
      three.step(saved, 2);
      for (Training* const other : {&two, &whole}) {
        Session session(other->graph);
        Saver(other->graph).restore(session, path);
        other->step(session, 2);
        EXPECT_THAT(other->value(session).span<float>(),
                    Pointwise(FloatNear(1e-6F), three.value(saved).span<float>()))
            << name;
      }
    }
}

TEST(PartitionedVariables, AreNoOtherTrainingWithAnotherNumberOfParts) {
  const TemporaryDirectory folder;
  for (const auto& [optimizer, parts, text] : {std::tuple{"momentum", 3, ""},
                                               {"momentum", 2, ""},
                                               {"momentum", 0, ""},
                                               {"adagrad", 3, "1 variable (\"e/Adagrad\") not in it"}}) {
    Training training(optimizer, parts, true);
    testing::internal::CaptureStderr();
    {
      MonitoredTrainingSession session(training.graph, {.checkpoint_dir = folder.path()});
      session.run(training.train, {{training.ids, Tensor::of<std::int32_t>({1}, {3})}});
    }
    const std::string log = testing::internal::GetCapturedStderr();
    if (*text == '\0') EXPECT_THAT(log, Not(HasSubstr("is of another training step")));
    else EXPECT_THAT(log, HasSubstr(text));
  }
}

TEST(PartitionedVariables, KeepTheirSlotsInOneTensor) {
  const TemporaryDirectory folder;
  Training three("momentum", 3, true);
  Session session(three.graph);
  session.run(three.init);
  const CheckpointReader reader(Saver(three.graph).save(session, folder / "model.ckpt"));
  EXPECT_EQ(reader.index().tensors.at("e/Momentum").shape, kShape);
  EXPECT_EQ(reader.index().tensors.count("e/part_0/Momentum"), 0U);
}

}  // namespace
}  // namespace kolo
