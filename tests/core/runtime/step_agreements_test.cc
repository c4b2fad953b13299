#include <kolo/core/runtime/step_agreements.h>

#include <string>

#include <gmock/gmock.h>

#include <kolo/core/base/error.h>
#include <tests/core/stub_agreement.h>

namespace kolo::detail {
namespace {

using ::testing::ElementsAre;
using ::testing::ThrowsMessage;

using Log = std::vector<std::string>;

// Writes down what it is told, under its name.
class LoggingAgreement final : public kolo::testing::StubAgreement {
 public:
  LoggingAgreement(Log& log, std::string name) : log_(log), name_(std::move(name)) {}
  void begin_step() override {
    if (broken) throw UnavailableError("rank 1 is gone");
    log_.push_back("begin " + name_);
  }
  void end_step() override { log_.push_back("end " + name_); }
  void fail(const std::string& text) override {
    log_.push_back("fail " + name_ + ": " + text);
    if (mute) throw UnavailableError("nobody hears it");
  }
  void end_of_data_in_step(const std::string& text) override {
    log_.push_back("end of data " + name_ + ": " + text);
  }
  bool broken = false, mute = false;

 private:
  Log& log_;
  std::string name_;
};

struct StepAgreementsTest : ::testing::Test {
  Log log;
  std::shared_ptr<LoggingAgreement> a = std::make_shared<LoggingAgreement>(log, "a");
  std::shared_ptr<LoggingAgreement> b = std::make_shared<LoggingAgreement>(log, "b");
  const AgreementList both = {a, b};
  Mutex one_step;
};

TEST_F(StepAgreementsTest, EndWhatTheyBegan) {
  {
    const StepAgreements step(one_step, both);
    EXPECT_THAT(log, ElementsAre("begin a", "begin b"));
    log.clear();
  }
  EXPECT_THAT(log, ElementsAre("end b", "end a"));
}

TEST_F(StepAgreementsTest, EndTheFirstWhereTheSecondCannotBegin) {
  b->broken = true;
  EXPECT_THAT([&] { StepAgreements(one_step, both); }, ThrowsMessage<UnavailableError>("rank 1 is gone"));
  EXPECT_THAT(log, ElementsAre("begin a", "fail a: rank 1 is gone", "fail b: rank 1 is gone", "end a"));
}

TEST_F(StepAgreementsTest, LetTheNextStepBeginAfterOneThatCouldNot) {
  b->broken = true;
  EXPECT_THROW(StepAgreements(one_step, both), UnavailableError);
  b->broken = false;
  log.clear();
  { const StepAgreements step(one_step, both); }
  EXPECT_THAT(log, ElementsAre("begin a", "begin b", "end b", "end a"));
}

TEST_F(StepAgreementsTest, TellTheOthersOfAFailureBeforeTheStepRuns) {
  const auto run = [&] {
    const StepAgreements step(one_step, both);
    step.prepare([] { throw ResourceExhaustedError("no memory for a frame"); });
  };
  EXPECT_THAT(run, ThrowsMessage<ResourceExhaustedError>("no memory for a frame"));
  EXPECT_THAT(log, ElementsAre("begin a", "begin b", "fail a: no memory for a frame",
                               "fail b: no memory for a frame", "end b", "end a"));
}

TEST_F(StepAgreementsTest, TellTheOthersOfTheEndOfTheDataAsSuch) {
  tell_others(both, std::make_exception_ptr(OutOfRangeError("no more files")));
  EXPECT_THAT(log, ElementsAre("end of data a: no more files", "end of data b: no more files"));
}

TEST_F(StepAgreementsTest, TellTheSecondWhereTheFirstCannotTell) {
  a->mute = true;
  tell_others(both, std::make_exception_ptr(DataLossError("a bad file")));
  EXPECT_THAT(log, ElementsAre("fail a: a bad file", "fail b: a bad file"));
}

}  // namespace
}  // namespace kolo::detail
