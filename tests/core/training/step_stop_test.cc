#include <kolo/core/training/step_stop.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kolo::detail {
namespace {

using testing::NiceMock;
using testing::Return;

class MockAgreement : public StepAgreement {
 public:
  MOCK_METHOD(std::vector<int>, ranks, (), (const, override));
  MOCK_METHOD(void, compare, (), (override));
  MOCK_METHOD(void, set_step, (std::int64_t), (override));
  MOCK_METHOD(void, begin_step, (), (override));
  MOCK_METHOD(void, end_step, (), (override));
  MOCK_METHOD(void, append_trace, (StepTrace&), (const, override));
  MOCK_METHOD(void, request_stop, (), (override));
  MOCK_METHOD(StepVerdict, last_step, (), (const, override));
  MOCK_METHOD(void, request_save, (), (override));
  MOCK_METHOD(bool, take_save, (), (override));
  MOCK_METHOD(void, end_of_data, (), (override));
  MOCK_METHOD(void, end_of_data_in_step, (const std::string&), (override));
  MOCK_METHOD(void, fail, (const std::string&), (override));
};

using Agreement = std::shared_ptr<NiceMock<MockAgreement>>;

TEST(StepStop, IsAloneWithOneRankOrWithoutASharedStep) {
  EXPECT_TRUE(StepStop({std::make_shared<NiceMock<MockAgreement>>()}, 1).is_alone());
  EXPECT_TRUE(StepStop({}, 2).is_alone());
  EXPECT_FALSE(StepStop({std::make_shared<NiceMock<MockAgreement>>()}, 2).is_alone());
}

TEST(StepStop, AsksOnceHoweverOftenItIsTold) {
  Agreement agreement = std::make_shared<NiceMock<MockAgreement>>();
  StepStop stop({agreement}, 2);
  EXPECT_CALL(*agreement, request_stop).Times(1);
  stop.ask();
  stop.ask();
}

TEST(StepStop, CountsAnAgreementThatSeveralNodesShareOnce) {
  Agreement agreement = std::make_shared<NiceMock<MockAgreement>>();
  StepStop stop({agreement, agreement}, 2);
  EXPECT_EQ(stop.count_by_ranks().at({}), 1);
  EXPECT_CALL(*agreement, compare).Times(1);
  stop.compare();
}

TEST(StepStop, HasAgreedWhenAnyScheduleSaysSo) {
  Agreement first = std::make_shared<NiceMock<MockAgreement>>(),
            second = std::make_shared<NiceMock<MockAgreement>>();
  StepStop stop({first, second}, 2);
  EXPECT_FALSE(stop.is_agreed());
  ON_CALL(*second, last_step).WillByDefault(Return(StepVerdict{.stop = true, .end_of_data = false}));
  EXPECT_TRUE(stop.is_agreed());
}

TEST(StepStop, TellsTheOthersWhenThisRankGoesAlone) {
  Agreement agreement = std::make_shared<NiceMock<MockAgreement>>();
  StepStop stop({agreement}, 2);
  EXPECT_CALL(*agreement, end_of_data).Times(1);
  stop.end_of_data();
}

TEST(StepStop, TellsEachSetOfRanksThatDoesNotHearOfItElsewhere) {
  const auto of_ranks = [](std::vector<int> ranks) {
    Agreement agreement = std::make_shared<NiceMock<MockAgreement>>();
    ON_CALL(*agreement, ranks).WillByDefault(Return(std::move(ranks)));
    return agreement;
  };
  const Agreement some = of_ranks({0, 1}), others = of_ranks({0, 2}), again = of_ranks({0, 1});
  EXPECT_CALL(*some, end_of_data).Times(1);
  EXPECT_CALL(*others, end_of_data).Times(1);
  EXPECT_CALL(*again, end_of_data).Times(0);
  StepStop({some, others, again}, 3).end_of_data();

  const Agreement all = of_ranks({});
  EXPECT_CALL(*all, end_of_data).Times(1);
  StepStop({others, all}, 3).end_of_data();
}

TEST(StepStop, WaitsForNobodyOnceAllHaveAgreed) {
  Agreement agreement = std::make_shared<NiceMock<MockAgreement>>();
  StepStop stop({agreement}, 2);
  ON_CALL(*agreement, last_step).WillByDefault(Return(StepVerdict{.stop = false, .end_of_data = true}));
  EXPECT_CALL(*agreement, end_of_data).Times(0);
  EXPECT_CALL(*agreement, fail).Times(0);
  stop.end_of_data();
  stop.fail("too late");
}

TEST(StepStop, SavesWhereAnyScheduleOfAllRanksSaysSo) {
  Agreement first = std::make_shared<NiceMock<MockAgreement>>(),
            second = std::make_shared<NiceMock<MockAgreement>>();
  StepStop stop({first, second}, 2);
  EXPECT_CALL(*first, request_save).Times(1);
  EXPECT_CALL(*second, request_save).Times(1);
  stop.ask_to_save();
  EXPECT_CALL(*first, take_save).WillOnce(Return(true));
  EXPECT_CALL(*second, take_save)
      .WillOnce(Return(false));  // asked for all the same: its request is withdrawn
  EXPECT_TRUE(stop.take_save());
}

}  // namespace
}  // namespace kolo::detail
