#include <kolo/core/training/rank_state.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <kolo/core/base/error.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/training/common_start.h>
#include <kolo/core/training/saver.h>

#include "tests/core/training/temporary_directory.h"
#include "tests/core/training/thread_group.h"

namespace kolo {
namespace {

using testing::Each;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::ThrowsMessage;

// A variable "model" and, beside it, "extra".
struct Model {
  explicit Model(float value = 1) : model(s.named("model"), fill(s, DType::f32, {}, value)) {}
  Variable add_extra(float value) {
    return Variable(s.named("extra"), fill(s, DType::f32, {}, value), {.trainable = false});
  }
  float value(Session& session, const Variable& variable) {
    return session.run(variable.read()).value<float>();
  }

  Graph graph;
  Scope s{graph};
  Variable model;
};

// Writes a checkpoint that knows "model" = 5 alone.
std::string checkpoint_without_extra(const TemporaryDirectory& folder) {
  Model plain(5);
  const Operation initializer = global_variables_initializer(plain.s);
  Session session(plain.graph);
  session.run(initializer);
  return Saver(plain.graph).save(session, folder / "plain");
}

TEST(OptionalState, StartsAfreshWhereACheckpointLacksIt) {
  const TemporaryDirectory folder;
  const std::string path = checkpoint_without_extra(folder);
  Model trained;
  const Variable extra = trained.add_extra(7);
  set_rank_state(trained.graph, extra, {.optional = true});
  Session session(trained.graph);
  Saver(trained.graph).restore(session, path);
  EXPECT_EQ(trained.value(session, trained.model), 5);
  EXPECT_EQ(trained.value(session, extra), 7);
}

TEST(OptionalState, IsTheOnlyOneThatACheckpointMayLack) {
  const TemporaryDirectory folder;
  const std::string path = checkpoint_without_extra(folder);
  Model trained;
  trained.add_extra(7);
  Session session(trained.graph);
  EXPECT_THAT([&] { Saver(trained.graph).restore(session, path); },
              ThrowsMessage<NotFoundError>(HasSubstr("Key extra not found in checkpoint.")));
}

TEST(OptionalState, IsSavedAndRestored) {
  const TemporaryDirectory folder;
  std::string path;
  {
    Model trained;
    set_rank_state(trained.graph, trained.add_extra(7), {.optional = true});
    const Operation initializer = global_variables_initializer(trained.s);
    Session session(trained.graph);
    session.run(initializer);
    path = Saver(trained.graph).save(session, folder / "trained");
  }
  Model again;
  const Variable extra = again.add_extra(0);
  set_rank_state(again.graph, extra, {.optional = true});
  Session session(again.graph);
  Saver(again.graph).restore(session, path);
  EXPECT_EQ(again.value(session, extra), 7);
}

TEST(OptionalState, OfARankIsNotBroadcast) {
  const auto errors = run_ranks(3, [](Group& group) {
    const auto own_value = static_cast<float>(group.rank());
    Model model(own_value);
    const Variable own = model.add_extra(own_value);
    set_rank_state(model.graph, own, {.kind = RankState::Kind::own});
    EXPECT_EQ(rank_state(own), (RankState{.kind = RankState::Kind::own, .optional = true}));
    EXPECT_FALSE(rank_state(model.model).optional);
    const Operation initializer = global_variables_initializer(model.s);
    Session session(model.graph);
    if (group.rank() == 0) session.run(initializer);
    detail::broadcast_state(group, session, {});
    EXPECT_EQ(model.value(session, model.model), 0);
    EXPECT_EQ(model.value(session, own), own_value);
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

}  // namespace
}  // namespace kolo
