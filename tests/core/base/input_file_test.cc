#include <kolo/core/base/input_file.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cerrno>

#include <kolo/core/base/error.h>

#include "tests/core/training/temporary_directory.h"
#include "tests/recorded_calls.h"

namespace kolo {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(InputFile, GivesBytesFromAnyPlace) {
  const TemporaryDirectory folder;
  write_bytes(folder / "a", "0123456789");
  InputFile file(folder / "a");
  char bytes[3];
  file.read(4, bytes, 3);
  EXPECT_EQ(std::string(bytes, 3), "456");
  EXPECT_EQ(file.read_all(10), "0123456789");
}

TEST(InputFile, TellsMissingFromUnreadable) {
  const TemporaryDirectory folder;
  EXPECT_THAT([&] { InputFile(folder / "a", "a"); }, ThrowsMessage<NotFoundError>("a: missing"));
  write_bytes(folder / "a", "text");
  RecordedCalls calls(folder.path());
  calls.fail("open a", EACCES);
  EXPECT_THAT(
      [&] { InputFile(folder / "a", "a"); },
      ThrowsMessage<FailedPreconditionError>("cannot read " + (folder / "a") + ": Permission denied"));
}

TEST(InputFile, TellsAnErrorOfTheDiskFromAShortFile) {
  const TemporaryDirectory folder;
  write_bytes(folder / "a", "text");
  InputFile file(folder / "a");
  char bytes[8];
  EXPECT_THAT([&] { file.read(0, bytes, 8); }, ThrowsMessage<DataLossError>(HasSubstr("ends at byte 4")));
  RecordedCalls calls(folder.path());
  calls.fail("read a", EIO);
  EXPECT_THAT([&] { file.read(0, bytes, 4); }, ThrowsMessage<UnknownError>(HasSubstr("Input/output error")));
}

TEST(InputFile, WaitsForNoPipeAndReadsNoDevice) {
  const TemporaryDirectory folder;
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  for (const std::string& path : {folder / "pipe", std::string("/dev/zero"), folder.path()})
    EXPECT_THAT([&] { InputFile(path, "it"); }, ThrowsMessage<DataLossError>("it: not a file"));
}

TEST(InputFile, TakesNoMoreThanItIsAskedTo) {
  const TemporaryDirectory folder;
  write_bytes(folder / "a", "0123456789");
  EXPECT_THAT([&] { InputFile(folder / "a", "a").read_all(9); },
              ThrowsMessage<DataLossError>("a: 10 bytes; at most 9 are taken"));
}

TEST(TextOrNothing, IsTheFilesTextOrEmpty) {
  const TemporaryDirectory folder;
  write_bytes(folder / "a", "0123456789");
  EXPECT_EQ(text_or_nothing(folder / "a", 10), "0123456789");
  EXPECT_EQ(text_or_nothing(folder / "a", 9), "");
  EXPECT_EQ(text_or_nothing(folder / "b", 9), "");
  EXPECT_EQ(text_or_nothing(folder.path(), 9), "");
}

}  // namespace
}  // namespace kolo
