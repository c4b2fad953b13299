// The code on docs/checkpoints.md: compiled, run, and found there word for word.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include <kolo/core/training/checkpoint_files.h>
#include <kolo/core/training/monitored_session.h>

#include "tests/core/training/counting_graph.h"
#include "tests/core/training/temporary_directory.h"
#include "tests/support/paths.h"

namespace kolo {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// The lines of this file between `// page: <name>` and `// page end`, without their indentation.
std::string snippet(const std::string& name) {
  std::istringstream lines(bytes_of_file(source_path("tests/core/training/checkpoints_page_test.cc")));
  std::string text, line;
  while (std::getline(lines, line) && line != "  // page: " + name) continue;
  while (std::getline(lines, line) && line != "  // page end") text += line.substr(2) + "\n";
  return text;
}

class CheckpointsPage : public testing::Test {
 protected:
  const std::string page_ = bytes_of_file(source_path("docs/checkpoints.md"));
  TemporaryDirectory temporary_;
  const std::string folder = temporary_.path();
  CountingGraph model_;
  Graph& graph = model_.graph;
};

TEST_F(CheckpointsPage, SavesAndRestoresAsItShows) {
  Session session(graph);
  session.run(global_variables_initializer(model_.s));
  // page: saver
  Saver saver(graph);  // all global variables; or a list of them
  saver.save(session, folder + "/model.ckpt", 200);
  if (const auto newest = newest_intact_checkpoint(folder)) saver.restore(session, *newest);
  const Tensor w = SafetensorsReader(folder + "/model.ckpt-200.safetensors").read("w");
  // page end
  EXPECT_THAT(w.span<float>(), ElementsAre(10, 20));
  EXPECT_THAT(page_, HasSubstr("```cpp\n" + snippet("saver") + "```"));
}

TEST_F(CheckpointsPage, SavesStateOutsideTheGraphAsItShows) {
  std::int64_t samples_taken = 128;
  // page: state
  const SavedState samples{.name = "samples",
                           .save = [&] { return std::to_string(samples_taken); },
                           .restore = [&](const std::string& json) { samples_taken = std::stoll(json); }};
  MonitoredTrainingSession sess(
      graph, {.checkpoint_dir = folder, .save_checkpoint_steps = 100, .saved_state = {samples}});
  // page end
  sess.close();
  EXPECT_EQ(CheckpointReader(folder + "/model.ckpt-0").index().state.at("samples"), "128");
  EXPECT_THAT(page_, HasSubstr("```cpp\n" + snippet("state") + "```"));
}

}  // namespace
}  // namespace kolo
