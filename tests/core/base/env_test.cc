#include <gmock/gmock.h>

#include <cstdlib>
#include <limits>
#include <string>

#include <kolo/core/base/env.h>
#include <kolo/core/base/error.h>

namespace kolo {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Eq;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::ThrowsMessage;

constexpr char kName[] = "KOLO_ENV_TEST";

// Sets a variable for the length of a test.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  ~Variable() { unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
};

TEST(EnvString, TellsEmptyFromUnset) {
  EXPECT_EQ(env_string(kName), std::nullopt);
  const Variable variable(kName, "");
  EXPECT_EQ(env_string(kName), "");
}

TEST(EnvInt64, IsTheFallbackWhereUnsetEvenOutsideTheRange) { EXPECT_EQ(env_int64(kName, -1, 1, 9), -1); }

TEST(EnvInt64, TakesBothEndsOfTheRange) {
  for (const int value : {1, 9}) {
    const Variable variable(kName, std::to_string(value).c_str());
    EXPECT_EQ(env_int64(kName, 5, 1, 9), value);
  }
}

TEST(EnvInt64, RefusesAllElseAndNamesVariableValueAndRange) {
  for (const char* value : {"", "0", "10", "5x", " 5", "+5", "5.0", "0x5", "99999999999999999999"}) {
    const Variable variable(kName, value);
    EXPECT_THAT(
        [] { env_int64(kName, 5, 1, 9); },
        ThrowsMessage<InvalidArgumentError>(AllOf(HasSubstr(std::string("KOLO_ENV_TEST=\"") + value + '"'),
                                                  HasSubstr("allowed: a whole number from 1 to 9"))))
        << value;
  }
}

TEST(EnvInt64, NamesOnlyTheLowerEndOfAnOpenRange) {
  const Variable variable(kName, "-3");
  EXPECT_THAT([] { env_int64(kName, 5, 0); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("allowed: a whole number of at least 0")));
}

TEST(OmpNumThreads, IsNothingWhereBlankAndTheFirstOfAList) {
  const auto read = [](const char* text) {
    const Variable variable("OMP_NUM_THREADS", text);
    return omp_num_threads();
  };
  EXPECT_EQ(read(""), std::nullopt);
  EXPECT_EQ(read(" "), std::nullopt);
  EXPECT_EQ(read("3"), 3);
  EXPECT_EQ(read("4,2"), 4);
  EXPECT_EQ(read(" 4 , 2"), 4);
  for (const char* text : {"0", "x", ",2", "4097"}) EXPECT_THROW(read(text), InvalidArgumentError) << text;
}

TEST(EnvDouble, TakesScientificNotation) {
  const Variable variable(kName, "2.5e-1");
  EXPECT_EQ(env_double(kName, 1, 0, 1), 0.25);
}

TEST(EnvDouble, RefusesWhatIsNoFiniteNumberOfTheRange) {
  for (const char* value : {"", "nan", "inf", "-inf", "1.5", "-0.5", "1,0", "1s"}) {
    const Variable variable(kName, value);
    EXPECT_THAT(
        [] { env_double(kName, 1, 0, 1); },
        ThrowsMessage<InvalidArgumentError>(AllOf(HasSubstr(std::string("KOLO_ENV_TEST=\"") + value + '"'),
                                                  HasSubstr("allowed: a number from 0 to 1"))))
        << value;
  }
}

TEST(EnvDouble, RefusesInfinityWhereTheRangeIsOpen) {
  const Variable variable(kName, "inf");
  EXPECT_THROW(env_double(kName, 1, 0, std::numeric_limits<double>::infinity()), InvalidArgumentError);
}

TEST(EnvChoice, IsTheFallbackWhereUnset) { EXPECT_EQ(env_choice(kName, "auto", {"auto", "ring"}), "auto"); }

TEST(EnvChoice, NamesTheWordsAndTheNearestOne) {
  const Variable variable(kName, "rinng");
  EXPECT_THAT(
      [] {
        env_choice(kName, "auto", {"auto", "ring", "mpi"});
      },
      ThrowsMessage<InvalidArgumentError>(AllOf(HasSubstr("KOLO_ENV_TEST=\"rinng\""),
                                                HasSubstr("allowed: auto, ring, mpi"),
                                                HasSubstr("did you mean \"ring\"?"))));
}

TEST(UnknownKoloVariables, NamesTheNearestKnownOne) {
  const Variable variable("KOLO_BUCKET_BYTE", "1");
  EXPECT_THAT(unknown_kolo_variables({"KOLO_BUCKET_BYTES", "KOLO_TIMELINE"}),
              Contains(Eq("KOLO_BUCKET_BYTE is not an option of kolo; did you mean \"KOLO_BUCKET_BYTES\"?")));
}

TEST(UnknownKoloVariables, LeavesOutKnownOnesAndOtherPeoples) {
  const Variable known("KOLO_TIMELINE", "t"), other("NOT_KOLO_TIMELINE", "t");
  EXPECT_THAT(unknown_kolo_variables({"KOLO_TIMELINE"}), Not(Contains(HasSubstr("TIMELINE"))));
}

}  // namespace
}  // namespace kolo
