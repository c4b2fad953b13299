// Steps that take long: what their master says of them.
#include <gmock/gmock.h>

#include <cstdlib>
#include <future>

#include "local_master_fixture.h"

namespace kolo::detail {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class Stalls : public LocalMasterTest {
 protected:
  Stalls() { own().on_run = ps().on_run = ScriptedWorker::never; }
  ~Stalls() override { unsetenv("KOLO_STALL_WARNING_S"); }

  /// What is logged while a step waits for `how_long`.
  std::string log_of_step(const std::string& session, std::chrono::milliseconds how_long) {
    ::testing::internal::CaptureStderr();
    std::stop_source stop;
    auto step = std::async(std::launch::async, [&] { return run(session, {}, stop.get_token()); });
    step.wait_for(how_long);
    stop.request_stop();
    step.wait_for(kTestPatience);
    EXPECT_THROW(step.get(), CancelledError);
    return ::testing::internal::GetCapturedStderr();
  }
};

// The line of row 39 of CLUSTER.md.
TEST_F(Stalls, NameTaskNodeAndWhatItWaitsFor) {
  setenv("KOLO_STALL_WARNING_S", "0.1", 1);
  const std::string session = open();
  ps().change_status([&](TaskStatus& status) {
    status.waits = {{.session = session,
                     .step = 1,
                     .node = "take",
                     .op = "AccumulatorTakeGradient",
                     .what = "\"w/grad_accum\" has 2 of 3 gradients (missing from /job:worker/task:2)",
                     .nodes_left = 4}};
  });
  EXPECT_THAT(log_of_step(session, 1s),
              AllOf(HasSubstr("step 1 of session " + session +
                              ": waited 0.1 s for /job:ps/replica:0/task:0: take (AccumulatorTakeGradient) "
                              "waits for \"w/grad_accum\" has 2 of 3 gradients (missing from "
                              "/job:worker/task:2)"),
                    HasSubstr("waited 0.2 s for /job:ps/replica:0/task:0")));
}

TEST_F(Stalls, OfTasksThatSayNothingAreNamedAlone) {
  setenv("KOLO_STALL_WARNING_S", "0.05", 1);
  EXPECT_THAT(log_of_step(open(), 500ms), HasSubstr("waited 0.05 s for /job:worker/replica:0/task:0\n"));
}

TEST_F(Stalls, AreNotToldWhereNobodyWantsToHear) {
  setenv("KOLO_STALL_WARNING_S", "0", 1);
  EXPECT_THAT(log_of_step(open(), 200ms), IsEmpty());
}

}  // namespace
}  // namespace kolo::detail
