#include <kolo/core/device/engine_book.h>

#include <gmock/gmock.h>

#include <fstream>
#include <string>

#include <kolo/core/base/error.h>
#include <tests/core/training/temporary_directory.h>

namespace kolo {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

struct EngineBookTest : ::testing::Test {
  std::string path() const { return folder.path() + "/deep/engines.json"; }
  TemporaryDirectory folder;
};

TEST_F(EngineBookTest, KeepsWhatItIsToldForTheNextProcess) {
  {
    EngineBook book(path());
    EXPECT_FALSE(book.find("a", "q").has_value());
    book.note("a", "q", {.engine = 17, .place = 2, .by_time = true, .milliseconds = 0.25});
    book.note("b", "q", {.engine = 4, .place = 0});
    book.note("a", "q", {.engine = 18, .place = 3, .by_time = true, .milliseconds = 0.125});
  }
  EngineBook book(path());
  const auto found = book.find("a", "q");
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->engine, 18);
  EXPECT_EQ(found->place, 3);
  EXPECT_TRUE(found->by_time);
  EXPECT_EQ(found->milliseconds, 0.125);
  EXPECT_FALSE(book.find("b", "q")->by_time);
  EXPECT_FALSE(book.find("b", "another").has_value());
  EXPECT_EQ(read_engine_file(path()).size(), 2u);
}

TEST_F(EngineBookTest, BeginsADamagedFileAnew) {
  EngineBook(path()).note("a", "q", {.engine = 17});
  for (const char* const text :
       {"", "{", "[]", R"({"kolo_engines":2,"engines":[]})", R"({"kolo_engines":1})"}) {
    std::ofstream(path()) << text;
    EXPECT_THROW(read_engine_file(path()), DataLossError) << text;
    EngineBook book(path());
    EXPECT_FALSE(book.find("a", "q").has_value());
    book.note("a", "q", {.engine = 3});
    EXPECT_EQ(read_engine_file(path())[0].choice.engine, 3);
  }
}

TEST_F(EngineBookTest, GoesOnWhereItCannotBeWritten) {
  std::ofstream(folder.path() + "/deep") << "no folder";
  EngineBook book(path());
  book.note("a", "q", {.engine = 17});
  EXPECT_EQ(book.find("a", "q")->engine, 17);
  EXPECT_THAT([&] { read_engine_file(path()); }, ThrowsMessage<Error>(HasSubstr("cannot read")));
}

}  // namespace
}  // namespace kolo
