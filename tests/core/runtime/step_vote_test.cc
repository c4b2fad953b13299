#include <kolo/core/runtime/step_vote.h>

#include <string>

#include <gmock/gmock.h>

#include <kolo/core/base/error.h>
#include <tests/core/stub_vote.h>

namespace kolo::detail {
namespace {

using ::testing::ElementsAre;
using ::testing::ThrowsMessage;

using Log = std::vector<std::string>;

// Writes down what it is told, under its name.
class LoggingVote final : public kolo::testing::StubVote {
 public:
  LoggingVote(Log& log, std::string name) : log_(log), name_(std::move(name)) {}
  void begin() override {
    if (broken) throw UnavailableError("rank 1 is gone");
    log_.push_back("begin " + name_);
  }
  void end() override { log_.push_back("end " + name_); }
  void leave(StepFlag flag, const std::string& text) override {
    log_.push_back((flag == StepFlag::failed ? "fail " : "end of data ") + name_ + ": " + text);
    if (mute) throw UnavailableError("nobody hears it");
  }
  bool broken = false, mute = false;

 private:
  Log& log_;
  std::string name_;
};

struct VotedStepTest : ::testing::Test {
  Log log;
  std::shared_ptr<LoggingVote> a = std::make_shared<LoggingVote>(log, "a");
  std::shared_ptr<LoggingVote> b = std::make_shared<LoggingVote>(log, "b");
  const StepVotes both = {a, b};
  Mutex one_step;
};

TEST_F(VotedStepTest, EndsWhatItBegan) {
  {
    const VotedStep step(one_step, both);
    EXPECT_THAT(log, ElementsAre("begin a", "begin b"));
    log.clear();
  }
  EXPECT_THAT(log, ElementsAre("end b", "end a"));
}

TEST_F(VotedStepTest, EndsTheFirstWhereTheSecondCannotBegin) {
  b->broken = true;
  EXPECT_THAT([&] { VotedStep(one_step, both); }, ThrowsMessage<UnavailableError>("rank 1 is gone"));
  EXPECT_THAT(log, ElementsAre("begin a", "fail a: rank 1 is gone", "fail b: rank 1 is gone", "end a"));
}

TEST_F(VotedStepTest, LetsTheNextStepBeginAfterOneThatCouldNot) {
  b->broken = true;
  EXPECT_THROW(VotedStep(one_step, both), UnavailableError);
  b->broken = false;
  log.clear();
  { const VotedStep step(one_step, both); }
  EXPECT_THAT(log, ElementsAre("begin a", "begin b", "end b", "end a"));
}

TEST_F(VotedStepTest, TellsTheOthersOfAFailureBeforeTheStepRuns) {
  const auto run = [&] {
    const VotedStep step(one_step, both);
    step.prepare([] { throw ResourceExhaustedError("no memory for a frame"); });
  };
  EXPECT_THAT(run, ThrowsMessage<ResourceExhaustedError>("no memory for a frame"));
  EXPECT_THAT(log, ElementsAre("begin a", "begin b", "fail a: no memory for a frame",
                               "fail b: no memory for a frame", "end b", "end a"));
}

TEST_F(VotedStepTest, TellsTheOthersOfTheEndOfTheDataAsSuch) {
  tell_others(both, std::make_exception_ptr(OutOfRangeError("no more files")));
  EXPECT_THAT(log, ElementsAre("end of data a: no more files", "end of data b: no more files"));
}

TEST_F(VotedStepTest, TellsTheSecondWhereTheFirstCannotTell) {
  a->mute = true;
  tell_others(both, std::make_exception_ptr(DataLossError("a bad file")));
  EXPECT_THAT(log, ElementsAre("fail a: a bad file", "fail b: a bad file"));
}

}  // namespace
}  // namespace kolo::detail
