#include <kolo/launcher/job_folders.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace kolo::launcher {
namespace {

using namespace std::chrono_literals;
using testing::IsEmpty;
using testing::SizeIs;

class JobFoldersTest : public testing::Test {
 protected:
  JobFoldersTest() {
    std::filesystem::create_directories(temporary_);
    std::filesystem::create_directories(shared_);
    setenv("TMPDIR", temporary_.c_str(), 1);
  }
  ~JobFoldersTest() override {
    unsetenv("TMPDIR");
    std::filesystem::remove_all(root_);
  }
  std::vector<std::string> there() const {
    std::vector<std::string> paths;
    for (const auto& parent : {temporary_, shared_})
      for (const auto& entry : std::filesystem::directory_iterator(parent)) paths.push_back(entry.path());
    return paths;
  }
  // As a kolorun that is killed leaves them, with a segment of Open MPI's in one.
  void leave_folders() const {
    if (const pid_t child = fork(); child == 0) {
      const JobFolders folders(shared_);
      std::ofstream(there().back() + "/vader_segment.host.1234.0") << "segment";
      _exit(0);
    } else {
      waitpid(child, nullptr, 0);
    }
  }

  const std::filesystem::path root_ =
      std::filesystem::temp_directory_path() / ("job_folders_" + std::to_string(getpid()));
  const std::filesystem::path temporary_ = root_ / "tmp", shared_ = root_ / "shm";
};

TEST_F(JobFoldersTest, GoWithTheJobAndAllThatIsInThem) {
  {
    const JobFolders folders(shared_);
    ASSERT_THAT(there(), SizeIs(2));
    for (const std::string& path : there()) std::ofstream(path + "/segment") << "segment";
  }
  EXPECT_THAT(there(), IsEmpty());
}

TEST_F(JobFoldersTest, OfAKilledOneGoWithTheNext) {
  leave_folders();
  ASSERT_THAT(there(), SizeIs(2));
  { const JobFolders next(shared_); }
  EXPECT_THAT(there(), IsEmpty());
}

TEST_F(JobFoldersTest, OfAKilledOneGoWithAJobThatNeedsNone) {
  leave_folders();
  JobFolders::remove_left(shared_);
  EXPECT_THAT(there(), IsEmpty());
}

TEST_F(JobFoldersTest, OfARunningJobStay) {
  const JobFolders running(shared_);
  leave_folders();
  { const JobFolders next(shared_); }
  JobFolders::remove_left(shared_);
  EXPECT_THAT(there(), SizeIs(2));
}

// Between the making of a folder and its lock.
TEST_F(JobFoldersTest, ThatAreNotLockedYetStayAMinute) {
  std::filesystem::create_directory(shared_ / "new-kolo-mpi-Ab3dE6");
  { const JobFolders next(shared_); }
  EXPECT_THAT(there(), SizeIs(1));
  { const JobFolders next(shared_, 0s); }
  EXPECT_THAT(there(), IsEmpty());
}

TEST_F(JobFoldersTest, OfAnotherUserStay) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can make them";
  constexpr uid_t kNobody = 65534;
  const std::filesystem::path folder = shared_ / "kolo-mpi-Ab3dE6";
  std::filesystem::create_directory(folder);
  ASSERT_EQ(chown(folder.c_str(), kNobody, kNobody), 0);
  { const JobFolders next(shared_, 0s); }
  EXPECT_THAT(there(), SizeIs(1));
}

}  // namespace
}  // namespace kolo::launcher
