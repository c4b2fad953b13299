#include <kolo/collectives/engine/options.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include <kolo/core/base/error.h>

namespace kolo {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

class OptionsTest : public testing::Test {
 protected:
  void set(const char* name, const char* value) {
    setenv(name, value, 1);
    names_.push_back(name);
  }
  void TearDown() override {
    for (const char* name : names_) unsetenv(name);
  }

 private:
  std::vector<const char*> names_;
};

TEST_F(OptionsTest, HaveTheDocumentedDefaults) {
  const auto options = EngineOptions::from_environment();
  EXPECT_EQ(options.bucket_bytes, 26214400);
  EXPECT_EQ(options.first_bucket_bytes, 1048576);
  EXPECT_EQ(options.fusion_bytes, 67108864);
  EXPECT_EQ(options.cycle_time.count(), 1);
  EXPECT_EQ(options.cache_capacity, 1024);
  EXPECT_EQ(options.allreduce, "auto");
  EXPECT_EQ(options.stall_warning.count(), 60);
  EXPECT_EQ(options.stall_abort.count(), 600);
}

TEST_F(OptionsTest, ComeFromTheEnvironment) {
  set("KOLO_BUCKET_BYTES", "1000");
  set("KOLO_STALL_WARNING_S", "1.5");
  set("KOLO_ALLREDUCE", "mpi");
  set("KOLO_COMM_THREAD_CORE", "1");
  const auto options = EngineOptions::from_environment();
  EXPECT_EQ(options.bucket_bytes, 1000);
  EXPECT_EQ(options.stall_warning.count(), 1.5);
  EXPECT_EQ(options.allreduce, "mpi");
  EXPECT_EQ(options.comm_thread_core, 1);
}

TEST_F(OptionsTest, NameVariableAndValueThatDoNotParse) {
  set("KOLO_BUCKET_BYTES", "abc");
  EXPECT_THAT([] { EngineOptions::from_environment(); },
              ThrowsMessage<InvalidArgumentError>(
                  AllOf(HasSubstr("KOLO_BUCKET_BYTES"), HasSubstr("\"abc\""), HasSubstr("whole number"))));
}

TEST_F(OptionsTest, NameTheAlgorithmsOfThisBuild) {
  set("KOLO_ALLREDUCE", "quickly");
  EXPECT_THAT([] { EngineOptions::from_environment(); },
              ThrowsMessage<InvalidArgumentError>(
                  AllOf(HasSubstr("quickly"), HasSubstr("auto"), HasSubstr("nccl"), HasSubstr("ring"))));
}

TEST_F(OptionsTest, TakeAFileAsTableOfCosts) {
  set("KOLO_AUTOTUNE", "hosts.json");
  EXPECT_EQ(EngineOptions::from_environment().cost_table, "hosts.json");
  EXPECT_FALSE(EngineOptions::from_environment().autotune);
}

TEST_F(OptionsTest, NameTheNearestAlgorithmForAMistypedOne) {
  set("KOLO_ALLREDUCE", "rnig");
  EXPECT_THAT([] { EngineOptions::from_environment(); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("did you mean \"ring\"")));
}

TEST(DifferencesTable, ListsTheRanksOfEachValue) {
  EXPECT_EQ(differences_table({{{"a", "1"}, {"b", "2"}}, {{"a", "1"}, {"b", "3"}}, {{"a", "1"}, {"b", "2"}}}),
            "\n  b: 2 on ranks [0,2]; 3 on ranks [1]");
}

TEST(DifferencesTable, IsEmptyWhenAllAgree) {
  EXPECT_EQ(differences_table({{{"a", "1"}}, {{"a", "1"}}}), "");
}

}  // namespace
}  // namespace kolo
