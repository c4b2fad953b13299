#include <gtest/gtest.h>

#include <new>
#include <stdexcept>
#include <string>

#include <kolo/core/base/error.h>

namespace kolo {
namespace {

template <typename Class>
void expect_thrown_as(Code code, const std::string& class_name) {
  EXPECT_EQ(name(code) + std::string("Error"), class_name);
  try {
    throw_error(code, "braces {} stay as they are");
  } catch (const Class& error) {
    EXPECT_EQ(error.code(), code);
    EXPECT_STREQ(error.what(), "braces {} stay as they are");
    return;
  } catch (const Error& other) {
    FAIL() << class_name << " was thrown as " << name(other.code());
  }
}

TEST(Error, OfEachCodeIsThrownAsItsOwnClass) {
  expect_thrown_as<CancelledError>(Code::cancelled, "CancelledError");
  expect_thrown_as<UnknownError>(Code::unknown, "UnknownError");
  expect_thrown_as<InvalidArgumentError>(Code::invalid_argument, "InvalidArgumentError");
  expect_thrown_as<DeadlineExceededError>(Code::deadline_exceeded, "DeadlineExceededError");
  expect_thrown_as<NotFoundError>(Code::not_found, "NotFoundError");
  expect_thrown_as<AlreadyExistsError>(Code::already_exists, "AlreadyExistsError");
  expect_thrown_as<ResourceExhaustedError>(Code::resource_exhausted, "ResourceExhaustedError");
  expect_thrown_as<FailedPreconditionError>(Code::failed_precondition, "FailedPreconditionError");
  expect_thrown_as<AbortedError>(Code::aborted, "AbortedError");
  expect_thrown_as<OutOfRangeError>(Code::out_of_range, "OutOfRangeError");
  expect_thrown_as<UnimplementedError>(Code::unimplemented, "UnimplementedError");
  expect_thrown_as<InternalError>(Code::internal, "InternalError");
  expect_thrown_as<UnavailableError>(Code::unavailable, "UnavailableError");
  expect_thrown_as<DataLossError>(Code::data_loss, "DataLossError");
}

TEST(Error, FormatsItsMessage) {
  EXPECT_STREQ(InvalidArgumentError("{} of {}", 3, "four").what(), "3 of four");
}

TEST(CodeOf, IsAKoloErrorsOwnCode) { EXPECT_EQ(code_of(DataLossError("cut")), Code::data_loss); }

TEST(CodeOf, IsResourceExhaustedWhereMemoryRanOut) {
  EXPECT_EQ(code_of(std::bad_alloc()), Code::resource_exhausted);
}

TEST(CodeOf, IsUnknownForStrangers) { EXPECT_EQ(code_of(std::runtime_error("?")), Code::unknown); }

void call_where_nobody_catches(void (*function)()) noexcept { function(); }

TEST(UncaughtErrorDeathTest, IsOneLineWithItsKind) {
  EXPECT_EXIT(call_where_nobody_catches([] { throw NotFoundError("{} is not there", "x"); }),
              testing::ExitedWithCode(1), "^kolo: NotFound: x is not there\n$");
}

TEST(UncaughtErrorDeathTest, OfAnotherKindIsLeftToTheLanguage) {
  EXPECT_DEATH(call_where_nobody_catches([] { throw std::runtime_error("not ours"); }), "terminate called");
}

}  // namespace
}  // namespace kolo
