// What a saver does otherwise where it is asked to.
#include <kolo/core/training/checkpoint_files.h>
#include <kolo/core/training/saver.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include <kolo/core/base/error.h>

#include "tests/core/training/counting_graph.h"
#include "tests/core/training/temporary_directory.h"

namespace kolo {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

class SaverOptionsTest : public testing::Test {
 protected:
  SaverOptionsTest() { session_.run(global_variables_initializer(model_.s)); }

  TemporaryDirectory folder_;
  CountingGraph model_;
  Session session_{model_.graph};
};

TEST_F(SaverOptionsTest, WritesAnotherStateFile) {
  Saver(model_.graph).save(session_, folder_ / "m", 1, {}, nullptr, {.latest_filename = "newest"});
  EXPECT_FALSE(std::filesystem::exists(folder_ / "checkpoint"));
  EXPECT_EQ(read_checkpoint_state(folder_.path(), "newest")->model_checkpoint_path, "m-1");
}

TEST_F(SaverOptionsTest, LeavesTheStateFileAlone) {
  Saver saver(model_.graph);
  saver.save(session_, folder_ / "m", 1);
  saver.save(session_, folder_ / "m", 2, {}, nullptr, {.write_state = false});
  EXPECT_EQ(read_checkpoint_state(folder_.path())->model_checkpoint_path, "m-1");
  EXPECT_THAT(saver.last_checkpoints(), ElementsAre(folder_ / "m-1", folder_ / "m-2"));
}

TEST_F(SaverOptionsTest, SaysWhichNameAStateFileCannotHave) {
  Saver saver(model_.graph);
  EXPECT_THAT(
      [&] { saver.save(session_, folder_ / "m", 1, {}, nullptr, {.latest_filename = "a/b"}); },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("'latest_filename' must not contain path components")));
  EXPECT_THAT([&] { saver.save(session_, folder_ / "m", {}, {}, nullptr, {.latest_filename = "m"}); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("'latest_filename' collides with 'save_path'")));
}

TEST_F(SaverOptionsTest, RestoresAnotherShapeOfAsManyElements) {
  const std::string path = Saver(model_.graph).save(session_, folder_ / "m", 1);
  Graph graph;
  Scope s(graph);
  const Variable w(s.named("w"), constant(s, Tensor::of<float>({2, 1}, {0, 0})));
  Session session(graph);
  EXPECT_THROW(Saver(graph).restore(session, path), InvalidArgumentError);
  Saver(graph, {.reshape = true}).restore(session, path);
  EXPECT_THAT(session.run(w.read()).span<float>(), ElementsAre(10, 20));
}

TEST_F(SaverOptionsTest, MayHaveNothingToSave) {
  const Graph empty;
  EXPECT_THROW(Saver{empty}, InvalidArgumentError);
  Saver saver(empty, {.allow_empty = true});
  EXPECT_EQ(saver.save(session_, folder_ / "m", 1), folder_ / "m-1");
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
}

}  // namespace
}  // namespace kolo
