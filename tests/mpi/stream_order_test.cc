// The order checker on what trainings give to streams, and on what they would give with one wait less.
#include <gmock/gmock.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <kolo/core/device/order_log.h>
#include <tests/core/training/temporary_directory.h>
#include <tests/mpi/gpu_training.h>
#include <tests/support/order_checker.h>

namespace kolo {
namespace {

using testing::conflicts;
using testing::GpuTraining;
using ::testing::IsEmpty;
using testing::Log;
using testing::LogLine;
using ::testing::Not;

Log log_of(const GpuTraining& training) {
  const TemporaryDirectory folder;
  const std::string file = folder / "order.log";
  OrderLog::open(file);
  testing::trained(training);
  OrderLog::close();
  return testing::read_log_file(file);
}

// As if line i waited for nothing; the log is as before.
std::vector<std::string> conflicts_without_wait(Log& log, std::size_t i) {
  std::string waited;
  std::swap(waited, log[i].fields[1]);
  auto found = conflicts(log);
  std::swap(waited, log[i].fields[1]);
  return found;
}

// The caller's, at the end of a run: for all that the run's streams have been given.
bool is_wait_for_a_run(const LogLine& line) {
  return line.kind == "wait" && line.fields[1].rfind("step:", 0) == 0;
}

// Behind the initializers: for these virtual GPUs wait node by node, and what waits for their streams waits
// in vain.
std::size_t first_step(const Log& log) {
  const auto end = std::find_if(log.begin(), log.end(), is_wait_for_a_run);
  return static_cast<std::size_t>(end - log.begin()) + 1;
}

bool is_wait_of_a_stream(const LogLine& line) {
  return line.kind == "wait" && line.fields[0].rfind("GPU", 0) == 0;
}

// At the end of a run its streams join in one event, for the caller: the run's own record follows.
bool is_join(const Log& log, std::size_t i) {
  const auto record =
      std::find_if(log.begin() + static_cast<std::ptrdiff_t>(i), log.end(), [&](const LogLine& line) {
        return line.fields[0] == log[i].fields[0] && line.kind != "wait" &&
               !(line.kind == "record" && line.fields[1].rfind("event:", 0) == 0);
      });
  return record != log.end() && record->kind == "record" && record->fields[1].rfind("step:", 0) == 0;
}

// Where ranks take waits away, each takes some: their plans are alike.
class StreamOrderOf : public ::testing::TestWithParam<const char*> {
 protected:
  GpuTraining on_gpu() const { return {.model = GetParam()}; }
  GpuTraining with_variables_on_cpu() const { return {.model = GetParam(), .variables = "/cpu:0"}; }
  GpuTraining as_towers() const { return {.model = GetParam(), .towers = {"/gpu:0", "/gpu:1"}}; }
};

TEST_P(StreamOrderOf, IsKept) {
  EXPECT_THAT(conflicts(log_of(on_gpu())), IsEmpty());
  EXPECT_THAT(conflicts(log_of(with_variables_on_cpu())), IsEmpty());
  EXPECT_THAT(conflicts(log_of(as_towers())), IsEmpty());
  GpuTraining with_threads = as_towers();
  with_threads.threads = 3;
  EXPECT_THAT(conflicts(log_of(with_threads)), IsEmpty());
}

TEST_P(StreamOrderOf, NeedsEachWait) {
  for (GpuTraining training : {on_gpu(), as_towers()}) {
    training.steps = 1;
    Log log = log_of(training);
    int waits = 0;
    for (std::size_t i = 0; i < log.size(); ++i) {
      // Where towers' losses or ranks' gradients leave the GPU, fences have waited for those streams already.
      const bool may_be_spared = (training.towers.size() > 1 || size() > 1) && is_join(log, i);
      if (!is_wait_of_a_stream(log[i]) || may_be_spared || waits++ % size() != rank()) continue;
      EXPECT_THAT(conflicts_without_wait(log, i), Not(IsEmpty()))
          << "line " << i + 1 << ": " << log[i].fields[0];
    }
    EXPECT_GT(waits, 2);
  }
}

// The fence's node ends next, on the same thread.
bool is_wait_of_a_fence(const Log& log, std::size_t i) {
  const auto& fields = log[i].fields;
  if (log[i].kind != "begin" || fields[1].rfind("end:", 0) != 0) return false;
  const auto next = std::find_if(log.begin() + static_cast<std::ptrdiff_t>(i) + 1, log.end(),
                                 [&](const LogLine& line) { return line.fields[0] == fields[0]; });
  return next != log.end() && next->kind == "wait";
}

TEST_P(StreamOrderOf, NeedsEachWaitOfTheHost) {
  for (GpuTraining training : {with_variables_on_cpu(), as_towers()}) {
    training.steps = 1;
    Log log = log_of(training);
    int waits = 0;
    for (std::size_t i = first_step(log); i < log.size(); ++i) {
      if (!is_wait_of_a_fence(log, i) || waits++ % size() != rank()) continue;
      EXPECT_THAT(conflicts_without_wait(log, i), Not(IsEmpty())) << "line " << i + 1;
    }
    EXPECT_GT(waits, 0);
  }
}

TEST_P(StreamOrderOf, NeedsTheCallersWaitForEachRun) {
  if (size() > 1) GTEST_SKIP() << "a fence of gradients may be the last to wait";
  GpuTraining training = on_gpu();
  training.steps = 1;
  Log log = log_of(training);
  int runs = 0;
  for (std::size_t i = first_step(log); i < log.size(); ++i) {
    if (!is_wait_for_a_run(log[i])) continue;
    ++runs;
    EXPECT_THAT(conflicts_without_wait(log, i), Not(IsEmpty())) << "line " << i + 1;
  }
  EXPECT_GT(runs, 1) << "the step's, and those that read the variables";
}

TEST_P(StreamOrderOf, NeedsMemoryUntilItsLastNodeIsDone) {
  Log log = log_of(on_gpu());
  const auto bytes_of = [](const LogLine& line) {
    return line.kind == "free" ? std::stoull(line.fields[1].substr(line.fields[1].find('+') + 1)) : 0;
  };
  const auto arena = std::max_element(
      log.begin(), log.end(), [&](const LogLine& a, const LogLine& b) { return bytes_of(a) < bytes_of(b); });
  ASSERT_NE(bytes_of(*arena), 0u);
  const LogLine freed = *arena;
  log.erase(arena);
  const auto last_wait = std::find_if(log.rbegin(), log.rend(), is_wait_of_a_stream);
  log.insert(last_wait.base(), freed);
  EXPECT_THAT(conflicts(log), Not(IsEmpty()));
}

INSTANTIATE_TEST_SUITE_P(Zoo, StreamOrderOf, ::testing::Values("lenet", "resnet20"),
                         [](const auto& param) { return std::string(param.param); });

}  // namespace
}  // namespace kolo
