#include <kolo/core/cluster/worker/step_exchange.h>

#include <gmock/gmock.h>

#include <kolo/core/base/error.h>

namespace kolo::detail {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Notes down what it is given, and releases it when it is told to.
struct Sink final : TensorSink {
  void put(std::size_t key, const Tensor&, bool dead, std::function<void()> released) override {
    keys.push_back(dead ? -static_cast<int>(key) : static_cast<int>(key));
    held.push_back(std::move(released));
  }
  void end(std::exception_ptr with) override {
    ++ends;
    error = std::move(with);
  }
  std::vector<int> keys;
  std::vector<std::function<void()>> held;
  int ends = 0;
  std::exception_ptr error;
};

class Exchange : public ::testing::Test {
 protected:
  // As every step does in the end: an exchange keeps the sinks that wait, and those what they have released.
  ~Exchange() override { exchange_->end(std::make_exception_ptr(AbortedError("the test is over"))); }
  void put(const std::string& key, bool dead = false) {
    exchange_->put(key, dead ? Tensor() : Tensor::scalar(1.0f), dead, [this] { ++released_; });
  }

  const std::shared_ptr<StepExchange> exchange_ = std::make_shared<StepExchange>();
  const std::shared_ptr<Sink> sink_ = std::make_shared<Sink>();
  int released_ = 0;
};

TEST_F(Exchange, KeepsValuesUntilTheyAreAskedFor) {
  put("b");
  exchange_->ask({"a", "b"}, sink_);
  EXPECT_THAT(sink_->keys, ElementsAre(1));
  EXPECT_EQ(sink_->ends, 0);
  put("a");
  EXPECT_THAT(sink_->keys, ElementsAre(1, 0));
  EXPECT_EQ(sink_->ends, 1);
  EXPECT_FALSE(sink_->error);
  EXPECT_EQ(released_, 0);
  for (const auto& release : sink_->held) release();
  EXPECT_EQ(released_, 2);
}

TEST_F(Exchange, PassesOnThatAValueIsDead) {
  exchange_->ask({"a", "b"}, sink_);
  put("b", true);
  EXPECT_THAT(sink_->keys, ElementsAre(-1));
}

TEST_F(Exchange, EndsRequestsOnceWhenTheStepIsOver) {
  exchange_->ask({"a", "b"}, sink_);
  put("a");
  exchange_->end(std::make_exception_ptr(AbortedError("Step 1 is over")));
  exchange_->end(std::make_exception_ptr(AbortedError("again")));
  EXPECT_EQ(sink_->ends, 1);
  EXPECT_THROW(std::rethrow_exception(sink_->error), AbortedError);
  const auto late = std::make_shared<Sink>();
  exchange_->ask({"b"}, late);
  EXPECT_EQ(late->ends, 1);
  EXPECT_THAT(late->keys, IsEmpty());
}

TEST_F(Exchange, TakesBackWhatNobodyAskedFor) {
  put("a");
  EXPECT_THAT(exchange_->state_of("a"), HasSubstr("who asks for a"));
  EXPECT_TRUE(exchange_->withdraw("a"));
  EXPECT_FALSE(exchange_->withdraw("a"));
  EXPECT_EQ(released_, 0);
}

TEST_F(Exchange, DoesNotTakeBackWhatWasHandedOver) {
  exchange_->ask({"a"}, sink_);
  put("a");
  EXPECT_THAT(exchange_->state_of("a"), HasSubstr("who takes a"));
  EXPECT_FALSE(exchange_->withdraw("a"));
}

TEST_F(Exchange, RefusesToGiveAValueTwice) {
  exchange_->ask({"a"}, sink_);
  const auto second = std::make_shared<Sink>();
  exchange_->ask({"a"}, second);
  EXPECT_THROW(std::rethrow_exception(second->error), InvalidArgumentError);
  put("a");
  EXPECT_THAT(sink_->keys, ElementsAre(0));
}

TEST_F(Exchange, AnswersNobodyWhoHasCancelled) {
  const auto call = exchange_->ask({"a"}, sink_);
  call->cancel();
  EXPECT_EQ(sink_->ends, 1);
  EXPECT_TRUE(is_consequence(sink_->error));
  put("a");
  EXPECT_THAT(sink_->keys, IsEmpty());
}

TEST_F(Exchange, EndsAnEmptyRequestAtOnce) {
  exchange_->ask({}, sink_);
  EXPECT_EQ(sink_->ends, 1);
  EXPECT_FALSE(sink_->error);
}

}  // namespace
}  // namespace kolo::detail
