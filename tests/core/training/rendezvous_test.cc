#include <kolo/core/training/rendezvous.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <kolo/core/base/error.h>
#include <kolo/core/ops/basic.h>

namespace kolo::detail {
namespace {

using testing::_;
using testing::NiceMock;
using testing::Return;
using testing::Throw;

class MockVote : public StepVote {
 public:
  MOCK_METHOD(std::vector<int>, ranks, (), (const, override));
  MOCK_METHOD(void, compare, (), (override));
  MOCK_METHOD(void, set_step, (std::int64_t), (override));
  MOCK_METHOD(void, begin, (), (override));
  MOCK_METHOD(void, end, (), (override));
  MOCK_METHOD(void, cast, (StepFlag), (override));
  MOCK_METHOD(void, leave, (StepFlag, const std::string&), (override));
  MOCK_METHOD(StepFlags, take_outcome, (), (override));
  MOCK_METHOD(void, append_trace, (StepTrace&), (const, override));
};
using Vote = std::shared_ptr<NiceMock<MockVote>>;

// Ranks that say what this one says.
class EchoingGroup final : public Group {
 public:
  explicit EchoingGroup(int size) : size_(size) {}
  int rank() const override { return 0; }
  int size() const override { return size_; }
  void broadcast(std::span<const Tensor>, int) override {}
  std::string broadcast(const std::string& text, int) override { return text; }
  std::vector<std::string> allgather(const std::string& text) override {
    return std::vector<std::string>(static_cast<std::size_t>(size_), text);
  }

 private:
  int size_;
};

struct RendezvousTest : ::testing::Test {
  static Vote make_vote(std::vector<int> ranks = {}) {
    Vote vote = std::make_shared<NiceMock<MockVote>>();
    ON_CALL(*vote, ranks).WillByDefault(Return(std::move(ranks)));
    return vote;
  }
  Rendezvous of(StepVotes votes) { return Rendezvous(session, group, std::move(votes)); }

  Graph graph;
  Session session{graph};
  EchoingGroup group{3};
  SessionRunArgs args;
  RunContext context{session, args};
  Vote vote = make_vote(), other = make_vote();
};

TEST_F(RendezvousTest, StopsAtOnceWithOneRankOrWithoutASharedStep) {
  EchoingGroup one(1);
  context.request_stop();
  Rendezvous alone(session, one, {vote}), unshared = of({});
  for (Rendezvous* rendezvous : {&alone, &unshared}) {
    EXPECT_FALSE(rendezvous->should_stop());
    rendezvous->decide(context);
    EXPECT_TRUE(rendezvous->should_stop());
    EXPECT_FALSE(rendezvous->stopped_on_request()) << "a hook of this rank has asked";
  }
}

TEST_F(RendezvousTest, AsksWithEachStepUntilAllStop) {
  Rendezvous rendezvous = of({vote});
  EXPECT_CALL(*vote, cast(StepFlag::stop)).Times(2);
  context.request_stop();
  rendezvous.send_wishes(context);
  rendezvous.decide(context);
  EXPECT_FALSE(rendezvous.is_over()) << "the others have not heard of it";
  RunContext next(session, args);
  rendezvous.send_wishes(next);
  EXPECT_CALL(*vote, take_outcome).WillOnce(Return(StepFlags{StepFlag::stop}));
  rendezvous.gather_if_agreed();
  rendezvous.decide(next);
  EXPECT_TRUE(rendezvous.is_over());
}

TEST_F(RendezvousTest, TellsAStopThatAnotherRankAskedForFromItsOwn) {
  Rendezvous rendezvous = of({vote, other});
  EXPECT_CALL(*other, take_outcome).WillOnce(Return(StepFlags{StepFlag::stop}));
  rendezvous.gather_if_agreed();
  rendezvous.decide(context);
  EXPECT_TRUE(rendezvous.stopped_on_request());
}

TEST_F(RendezvousTest, CountsAVoteThatSeveralNodesShareOnce) {
  EXPECT_CALL(*vote, compare).Times(1);
  of({vote, vote}).compare();
}

TEST_F(RendezvousTest, TellsTheOthersWhenThisRankGoesAlone) {
  EXPECT_CALL(*vote, leave(StepFlag::end_of_data, _)).Times(1);
  EXPECT_TRUE(of({vote}).leave());
}

TEST_F(RendezvousTest, TellsEachSetOfRanksThatDoesNotHearOfItElsewhere) {
  const Vote some = make_vote({0, 1}), others = make_vote({0, 2}), again = make_vote({0, 1});
  EXPECT_CALL(*some, leave(StepFlag::end_of_data, _)).Times(1);
  EXPECT_CALL(*others, leave(StepFlag::end_of_data, _)).Times(1);
  EXPECT_CALL(*again, leave).Times(0);
  of({some, others, again}).leave();

  EXPECT_CALL(*vote, leave(StepFlag::end_of_data, _)).Times(1);
  of({others, vote}).leave();
}

TEST_F(RendezvousTest, WaitsForNobodyOnceAllHaveAgreed) {
  Rendezvous rendezvous = of({vote});
  EXPECT_CALL(*vote, take_outcome)
      .WillOnce(Return(StepFlags{StepFlag::end_of_data}))
      .WillRepeatedly(Return(StepFlags()));
  EXPECT_CALL(*vote, leave).Times(0);
  rendezvous.leave();
  rendezvous.fail("too late");
}

TEST_F(RendezvousTest, EndsWithTheDataOfAnyRank) {
  Rendezvous rendezvous = of({vote});
  EXPECT_TRUE(rendezvous.end_of_data("no more files"));
  EXPECT_TRUE(rendezvous.is_over());
  EXPECT_FALSE(rendezvous.stopped_on_request());
  EXPECT_TRUE(rendezvous.leave()) << "in good order";
}

TEST_F(RendezvousTest, HasFailedWhereTheEndOfTheDataCannotBeTold) {
  Rendezvous rendezvous = of({vote});
  EXPECT_CALL(*vote, leave).WillOnce(Throw(UnavailableError("rank 1 is gone")));
  EXPECT_THROW(rendezvous.end_of_data("no more files"), UnavailableError);
  EXPECT_TRUE(rendezvous.has_failed());
  EXPECT_FALSE(rendezvous.leave());
}

// The others come to put their state together, not to another step.
TEST_F(RendezvousTest, FailsWhereItsDataEndsBesideASave) {
  Rendezvous rendezvous = of({vote});
  EXPECT_CALL(*vote, take_outcome)
      .WillOnce(Return(StepFlags{StepFlag::save}))
      .WillRepeatedly(Return(StepFlags()));
  EXPECT_CALL(*vote, leave(StepFlag::failed, "no more files")).Times(1);
  EXPECT_FALSE(rendezvous.end_of_data("no more files"));
  EXPECT_TRUE(rendezvous.has_failed());
}

TEST_F(RendezvousTest, PutsTheStateTogetherOnceWhereAnyScheduleOfAllRanksSaysSo) {
  Rendezvous rendezvous = of({vote, other});
  EXPECT_CALL(*other, take_outcome)
      .WillOnce(Return(StepFlags{StepFlag::save}))
      .WillRepeatedly(Return(StepFlags()));
  EXPECT_NE(rendezvous.gather_if_agreed(), nullptr);
  EXPECT_EQ(rendezvous.gather_if_agreed(), nullptr);
  EXPECT_FALSE(rendezvous.is_over());
}

TEST_F(RendezvousTest, ComesToTheSaveAtTheEndWhereTheOthersLeftBeforeTheyHeardOfItsFailure) {
  Rendezvous rendezvous = of({vote});
  EXPECT_CALL(*vote, take_outcome)
      .WillOnce(Return(StepFlags()))
      .WillOnce(Return(StepFlags()))
      .WillOnce(Return(StepFlags{StepFlag::stop}))
      .WillRepeatedly(Return(StepFlags()));
  EXPECT_CALL(*vote, leave(StepFlag::failed, "a bad file")).Times(1);
  rendezvous.fail("a bad file");
  EXPECT_TRUE(rendezvous.has_failed());
  EXPECT_FALSE(rendezvous.leave()) << "nothing is saved by it";
}

}  // namespace
}  // namespace kolo::detail
