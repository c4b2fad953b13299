#include <kolo/core/base/message_of.h>

#include <gtest/gtest.h>

#include <stdexcept>

namespace kolo {
namespace {

TEST(MessageOf, IsWhatTheExceptionSays) {
  EXPECT_EQ(message_of(std::make_exception_ptr(std::runtime_error("no more digits"))), "no more digits");
}

TEST(MessageOf, OfSomethingElseSaysSo) {
  EXPECT_EQ(message_of(std::make_exception_ptr(7)), "an exception that is no std::exception");
}

}  // namespace
}  // namespace kolo
