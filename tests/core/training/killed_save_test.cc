// A training that is killed before any one change of its folder, and started again, ends as if nothing had
// been.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include <kolo/core/training/checkpoint_files.h>
#include <kolo/core/training/hooks.h>
#include <kolo/core/training/monitored_session.h>

#include "tests/core/training/counting_graph.h"
#include "tests/core/training/temporary_directory.h"
#include "tests/recorded_calls.h"

namespace kolo {
namespace {

using testing::Contains;
using testing::Each;
using testing::EndsWith;
using testing::Not;

// In a process of its own; how it ended. The parent makes no session, and so has no threads.
int status_of(const std::function<void()>& body) {
  const pid_t child = fork();
  if (child == 0) {
    try {
      body();
      _exit(0);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s\n", error.what());
      _exit(1);
    }
  }
  int status = -1;
  waitpid(child, &status, 0);
  return status;
}

// Three steps, each saved, one checkpoint kept; the calls that changed the folder go to `calls_file`.
void train(const std::string& folder, const std::string& killed_before, const std::string& calls_file = "") {
  RecordedCalls calls(folder);
  if (!killed_before.empty()) calls.before(killed_before, [] { kill(getpid(), SIGKILL); });
  CountingGraph model;
  MonitoredTrainingSession session(model.graph, {.checkpoint_dir = folder,
                                                 .save_checkpoint_steps = 1,
                                                 .max_to_keep = 1,
                                                 .hooks = {std::make_shared<StopAtStepHook>(3)}});
  while (model.global_step(session.session()) < 3 && !session.should_stop()) session.run(model.train);
  session.close();
  if (calls_file.empty()) return;
  std::ofstream file(calls_file);
  for (const std::string& call : calls.calls()) file << call << "\n";
}

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<std::string> lines_of(const std::string& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

TEST(KilledSave, IsMadeUpForByTheNextStart) {
  TemporaryDirectory undisturbed, other;
  ASSERT_EQ(status_of([&] { train(undisturbed.path(), "", other / "calls"); }), 0);
  const auto calls = lines_of(other / "calls");
  ASSERT_THAT(calls, Contains("rename model.ckpt-1.index.json"));
  for (const std::string& call : calls) {
    TemporaryDirectory folder;
    const int status = status_of([&] { train(folder.path(), call); });
    ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << call;
    ASSERT_EQ(status_of([&] { train(folder.path(), ""); }), 0) << "killed before " << call;
    const auto newest = newest_intact_checkpoint(folder.path());
    ASSERT_EQ(newest, folder / "model.ckpt-3") << call;
    for (const char* file : {"model.ckpt-3.safetensors", "model.ckpt-3.index.json"})
      EXPECT_EQ(bytes_of(folder / file), bytes_of(undisturbed / file)) << "killed before " << call;
    EXPECT_THAT(folder.names(), Each(Not(EndsWith(".tmp")))) << call;
  }
}

}  // namespace
}  // namespace kolo
