#include <kolo/core/base/durable_file.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include <kolo/core/base/error.h>

#include "tests/core/training/temporary_directory.h"
#include "tests/recorded_calls.h"

namespace kolo {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::MatchesRegex;
using testing::ThrowsMessage;

TEST(DurableFile, AppearsUnderItsNameOnlyWhenPublished) {
  TemporaryDirectory folder;
  DurableFile file(folder / "a");
  file.write("text");
  file.finish();
  EXPECT_THAT(folder.names(), ElementsAre(MatchesRegex("a\\.[0-9a-f]{8}\\.tmp")));
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

TEST(DurableFile, ReportsAFullDiskAndRemovesItsTemporary) {
  TemporaryDirectory folder;
  RecordedCalls calls(folder.path());
  calls.fail("write a.tmp", ENOSPC);
  {
    DurableFile file(folder / "a");
    EXPECT_THAT([&] { file.write("text"); },
                ThrowsMessage<ResourceExhaustedError>(HasSubstr("No space left on device")));
  }
  EXPECT_THAT(folder.names(), IsEmpty());
}

TEST(DurableFile, IsOneOfTwoWritersEachOfWhomPublishesItsOwn) {
  TemporaryDirectory folder;
  DurableFile first(folder / "a"), second(folder / "a");
  first.write("first");
  second.write("second");
  first.finish();
  second.finish();
  second.publish();
  EXPECT_EQ(bytes_of_file(folder / "a"), "second");
  first.publish();
  EXPECT_EQ(bytes_of_file(folder / "a"), "first");
  EXPECT_THAT(folder.names(), ElementsAre("a"));
}

// Where anybody may write (a folder like /tmp), a link in the place of a temporary file would name the
// victim.
TEST(DurableFile, WritesThroughNoLinkInThePlaceOfItsTemporary) {
  TemporaryDirectory folder;
  write_bytes(folder / "victim", "precious");
  std::filesystem::create_symlink(folder / "victim", folder / "a.tmp");
  write_durable_file(folder / "a", "text");
  EXPECT_EQ(bytes_of_file(folder / "victim"), "precious");
  EXPECT_EQ(bytes_of_file(folder / "a"), "text");
}

TEST(DurableFile, IsForcedToTheDiskBeforeItGetsItsNameAndThenItsFolder) {
  TemporaryDirectory folder;
  const RecordedCalls calls(folder.path());
  write_durable_file(folder / "a", "text");
  EXPECT_THAT(calls.calls(), ElementsAre("write a.tmp", "fsync a.tmp", "rename a", "fsync ."));
}

// In a child: the limit and, without the mend, the signal are the process's.
TEST(DurableFile, ReportsTheLimitOfFileSizesAndLivesOn) {
  TemporaryDirectory folder;
  const pid_t child = fork();
  if (child == 0) {
    const rlimit limit{.rlim_cur = 1000, .rlim_max = RLIM_INFINITY};
    setrlimit(RLIMIT_FSIZE, &limit);
    try {
      write_durable_file(folder / "a", std::string(5000, 'x'));
    } catch (const ResourceExhaustedError& error) {
      const bool told = std::string(error.what()).find("File too large") != std::string::npos;
      sigset_t pending;
      sigpending(&pending);
      _exit(told && sigismember(&pending, SIGXFSZ) == 0 ? 0 : 2);
    }
    _exit(3);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status)) << "ended by signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_THAT(folder.names(), IsEmpty());
}

TEST(TargetOfTemporary, IsTheNameWithoutWhatMadeItATemporaryOne) {
  EXPECT_EQ(target_of_temporary("a.json.0123abcd.tmp"), "a.json");
  EXPECT_EQ(target_of_temporary("a.json.tmp"), "a.json") << "as older versions wrote it";
  EXPECT_EQ(target_of_temporary("a.0123abcx.tmp"), "a.0123abcx");
  EXPECT_EQ(target_of_temporary("a.json"), "");
}

}  // namespace
}  // namespace kolo
