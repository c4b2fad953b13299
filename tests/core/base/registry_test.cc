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
  numbers.add("two", 2, SourceLine::here());
  numbers.add("one", 1, SourceLine::here());
  EXPECT_EQ(*numbers.find("one"), 1);
  EXPECT_EQ(numbers.find("three"), nullptr);
  EXPECT_THAT(numbers.names(), ElementsAre("one", "two"));
}

TEST(Registry, RefusesASecondNameAndSaysBothPlaces) {
  Registry<int> numbers("number");
  const auto first = SourceLine::here();
  const auto second = SourceLine::here();
  numbers.add("one", 1, first);
  EXPECT_THAT([&] { numbers.add("one", 11, second); },
              ThrowsMessage<InternalError>(AllOf(HasSubstr("number \"one\" is registered twice"),
                                                 HasSubstr(first.text() + " and " + second.text()))));
  EXPECT_EQ(*numbers.find("one"), 1);
}

struct Registering {
  explicit Registering(SourceLine from = SourceLine::here()) : place(from) {}
  SourceLine place;
};

TEST(SourceLine, AsADefaultArgumentIsTheLineOfTheCall) {
  const Registering outer;
  const SourceLine here = SourceLine::here();
  EXPECT_EQ(outer.place.line + 1, here.line);
  EXPECT_EQ(here.text(), "registry_test.cc:" + std::to_string(here.line));
}

TEST(Registry, NamesTheNearestForOneThatThereIsNot) {
  Registry<int> numbers("number");
  numbers.add("seven", 7, SourceLine::here());
  numbers.add("eleven", 11, SourceLine::here());
  EXPECT_THAT([&] { numbers.at("sevn"); }, ThrowsMessage<InvalidArgumentError>(
                                               AllOf(HasSubstr("there is no number \"sevn\""),
                                                     HasSubstr("seven"), HasSubstr("known: eleven, seven"))));
}

}  // namespace
}  // namespace kolo
