#include <kolo/core/training/durable_file.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <kolo/core/base/error.h>

#include "tests/core/training/temporary_directory.h"

namespace kolo {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::ThrowsMessage;

TEST(DurableFile, AppearsUnderItsNameOnlyWhenPublished) {
  TemporaryDirectory folder;
  DurableFile file(folder / "a");
  file.write("text");
  file.finish();
  EXPECT_THAT(folder.names(), ElementsAre("a.tmp"));
  file.publish();
  sync_directory(folder.path());
  EXPECT_THAT(folder.names(), ElementsAre("a"));
  EXPECT_EQ(bytes_of_file(folder / "a"), "text");
}

TEST(DurableFile, LeavesTheOldFileAndNoTemporaryWhenDropped) {
  TemporaryDirectory folder;
  write_bytes(folder / "a", "old");
  {
    DurableFile file(folder / "a");
    file.write("new");
    file.finish();
  }
  EXPECT_THAT(folder.names(), ElementsAre("a"));
  EXPECT_EQ(bytes_of_file(folder / "a"), "old");
}

TEST(DurableFile, NamesThePathAndTheReasonWhereTheFolderIsMissing) {
  TemporaryDirectory folder;
  EXPECT_THAT([&] { DurableFile(folder / "none/a"); },
              ThrowsMessage<FailedPreconditionError>(HasSubstr("none/a: No such file or directory")));
}

// /dev/full fails every write with "No space left on device".
TEST(DurableFile, ReportsAFullDiskAndRemovesItsTemporary) {
  TemporaryDirectory folder;
  std::filesystem::create_symlink("/dev/full", folder / "a.tmp");
  {
    DurableFile file(folder / "a");
    EXPECT_THAT([&] { file.write("text"); },
                ThrowsMessage<ResourceExhaustedError>(HasSubstr("No space left on device")));
  }
  EXPECT_THAT(folder.names(), IsEmpty());
}

}  // namespace
}  // namespace kolo
