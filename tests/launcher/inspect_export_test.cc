// kolo-inspect export: a folder of checkpoints becomes a file for other programs.
#include <gmock/gmock.h>

#include <filesystem>

#include <kolo/core/graph/graph_def.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/ops/variables.h>
#include <kolo/core/runtime/session.h>
#include <kolo/core/training/inference_graph.h>
#include <kolo/core/training/saver.h>

#include "inspect_fixture.h"

namespace kolo {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class InspectExport : public InspectFixture {
 protected:
  // y = scale · x, the scale 2.5, and a variable that y does not need.
  InspectExport() {
    Scope s(graph_);
    const Output x = placeholder(s.named("x"), DType::f32, {-1, 3});
    const Variable scale(s.named("scale"), fill(s, DType::f32, {3}, 2.5));
    const Variable step(s.named("step"), zeros(s, DType::i64, {}));
    y_ = mul(s.named("y"), x, scale);
    Session session(graph_);
    session.run(global_variables_initializer(s));
    Saver(graph_).save(session, folder_ / "model.ckpt", 7);
  }

  Graph graph_;
  Output y_;
};

TEST_F(InspectExport, WritesWhatTheResultNeedsWithTheWeightsOfTheNewestCheckpoint) {
  write_inference_graph(folder_.path(), {y_});
  ASSERT_EQ(inspect("export " + folder_.path() + " " + folder_ / "model.onnx"), 0) << err_;
  EXPECT_THAT(out_, HasSubstr("with the 1 weight of " + folder_ / "model.ckpt-7"));
  const std::string model = bytes_of_file(folder_ / "model.onnx");
  const std::string weights("\0\0\x20\x40\0\0\x20\x40\0\0\x20\x40", 12);  // 2.5 three times
  EXPECT_THAT(model, HasSubstr(weights));
  EXPECT_THAT(model, HasSubstr("scale"));
  EXPECT_THAT(model, Not(HasSubstr("step")));
}

TEST_F(InspectExport, SaysWhoWritesTheGraphThatIsMissing) {
  EXPECT_EQ(inspect("export " + folder_.path() + " " + folder_ / "model.onnx"), 1);
  EXPECT_THAT(err_, HasSubstr("has no inference.pb: kolo-train writes it beside its checkpoints"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "model.onnx"));
}

TEST_F(InspectExport, SaysThatThereIsNoCheckpoint) {
  std::filesystem::create_directory(folder_ / "empty");
  write_inference_graph(folder_ / "empty", {y_});
  EXPECT_EQ(inspect("export " + folder_ / "empty" + " " + folder_ / "model.onnx"), 1);
  EXPECT_THAT(err_, HasSubstr("there is no checkpoint in " + folder_ / "empty"));
}

TEST_F(InspectExport, NamesItsUsageForAnotherCommandLine) {
  EXPECT_EQ(inspect("export " + folder_.path()), 2);
  EXPECT_THAT(err_, HasSubstr("1 paths given; usage: kolo-inspect export DIR FILE.onnx"));
  EXPECT_EQ(inspect("export " + folder_.path() + " model.pb"), 2);
  EXPECT_THAT(err_, HasSubstr("\"model.pb\" does not end in .onnx"));
}

TEST_F(InspectExport, TheGraphBesideTheCheckpointsIsRestoredAndRun) {
  write_inference_graph(folder_.path(), {y_});
  Graph loaded;
  import_graph_def(Scope(loaded), read_graph_def(folder_ / kInferenceGraphFile));
  Session session(loaded);
  Saver(loaded).restore(session, folder_ / "model.ckpt-7");
  const Output y = loaded.collection(kInferenceOutputs).at(0)->output();
  const Tensor x = Tensor::of<float>({1, 3}, {1, 2, -4});
  EXPECT_THAT(session.run(y, {{loaded.find_output("x"), x}}).span<float>(), ElementsAre(2.5f, 5, -10));
  EXPECT_EQ(loaded.find_node("step"), nullptr);
}

}  // namespace
}  // namespace kolo
