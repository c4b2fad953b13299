#include <kolo/core/base/registry.h>

#include <gmock/gmock.h>

namespace kolo {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(Registry, FindsWhatIsRegisteredAndNamesAllSorted) {
  Registry<int> numbers("number");
  numbers.add("two", 2, std::source_location::current());
  numbers.add("one", 1, std::source_location::current());
  EXPECT_EQ(*numbers.find("one"), 1);
  EXPECT_EQ(numbers.find("three"), nullptr);
  EXPECT_THAT(numbers.names(), ElementsAre("one", "two"));
}

TEST(Registry, RefusesASecondNameAndSaysBothPlaces) {
  Registry<int> numbers("number");
  const auto first = std::source_location::current(), second = std::source_location::current();
  numbers.add("one", 1, first);
  EXPECT_THAT(
      [&] { numbers.add("one", 11, second); },
      ThrowsMessage<InternalError>(AllOf(HasSubstr("number \"one\" is registered twice"),
                                         HasSubstr("registry_test.cc:" + std::to_string(first.line())))));
  EXPECT_EQ(*numbers.find("one"), 1);
}

TEST(Registry, NamesTheNearestForOneThatThereIsNot) {
  Registry<int> numbers("number");
  numbers.add("seven", 7, std::source_location::current());
  numbers.add("eleven", 11, std::source_location::current());
  EXPECT_THAT([&] { numbers.at("sevn"); }, ThrowsMessage<InvalidArgumentError>(
                                               AllOf(HasSubstr("there is no number \"sevn\""),
                                                     HasSubstr("seven"), HasSubstr("known: eleven, seven"))));
}

}  // namespace
}  // namespace kolo
