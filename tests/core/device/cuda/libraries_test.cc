#include <kolo/core/device/cuda/libraries.h>

#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include <tests/core/device/fake_gpus.h>

namespace kolo {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using testing::EnvironmentVariable;
using ::testing::HasSubstr;
using ::testing::StartsWith;

const std::string kOfCuda12 = FAKE_CUDNN_12;
const std::string kOfCuda13 = FAKE_CUDNN_13;

TEST(FindLibrary, TakesTheFirstOneThatOpensAndAsksItsVersion) {
  const FoundLibrary found = find_library(cudnn_kind(), 13, {"/no/such/libcudnn.so.9", kOfCuda13});
  EXPECT_EQ(found.path, kOfCuda13);
  EXPECT_EQ(found.version, "9.1.0");
  EXPECT_EQ(found.cuda_major, 13);
  EXPECT_THAT(found.tried, ElementsAre(StartsWith("/no/such/libcudnn.so.9: ")));
}

TEST(FindLibrary, PassesOverOneOfAnotherMajorVersionOfCuda) {
  const FoundLibrary found = find_library(cudnn_kind(), 13, {kOfCuda12, kOfCuda13});
  EXPECT_EQ(found.path, kOfCuda13);
  EXPECT_THAT(found.tried, ElementsAre(kOfCuda12 + ": for CUDA 12, 13 is asked for"));
}

TEST(FindLibrary, SaysOfEachPathWhyNoneServes) {
  const FoundLibrary found = find_library(cudnn_kind(), 13, {"/no/such/one", kOfCuda12, __FILE__});
  EXPECT_EQ(found.library, nullptr);
  EXPECT_EQ(found.function("cudnnGetVersion"), nullptr);
  EXPECT_THAT(found.tried,
              ElementsAre(HasSubstr("/no/such/one"), HasSubstr("for CUDA 12"), StartsWith(__FILE__)));
}

TEST(FindLibrary, KnowsCublasLtByItsNameAlone) {
  EXPECT_EQ(cublas_lt_kind(12).soname, "libcublasLt.so.12");
  const FoundLibrary found = find_library(cublas_lt_kind(13), 13, {kOfCuda13});
  EXPECT_EQ(found.version, "");  // it has no such function
}

TEST(FindLibrary, ReadsForWhichCudaNcclIsInTheLineThatItPrints) {
  const std::string path = std::filesystem::temp_directory_path() / "kolo_libnccl.so.2";
  std::filesystem::copy_file(kOfCuda13, path, std::filesystem::copy_options::overwrite_existing);
  std::ofstream(path, std::ios::app) << "NCCL version 2.28.9+cuda12.9";
  const FoundLibrary found = find_library(nccl_kind(), 13, {path});
  std::filesystem::remove(path);
  EXPECT_EQ(found.library, nullptr);
  EXPECT_THAT(found.tried, ElementsAre(path + ": for CUDA 12, 13 is asked for"));
}

TEST(FoundLibrary, GivesNullForAFunctionThatItLacks) {
  const FoundLibrary found = find_library(cudnn_kind(), 12, {kOfCuda12});
  EXPECT_NE(found.function("cudnnGetVersion"), nullptr);
  EXPECT_EQ(found.function("cudnnBackendExecute"), nullptr);
}

TEST(LibraryCandidates, BeginWithTheFoldersOfTheEnvironment) {
  const EnvironmentVariable variable("KOLO_CUDA_LIBRARIES", "/first:/second");
  const auto candidates = library_candidates("libnccl.so.2", "/beside");
  ASSERT_GE(candidates.size(), 4u);
  EXPECT_THAT(
      std::vector<std::string>(candidates.begin(), candidates.begin() + 4),
      ElementsAre("/first/libnccl.so.2", "/second/libnccl.so.2", "/beside/libnccl.so.2", "libnccl.so.2"));
}

TEST(LibraryCandidates, FindWhatPipHasPutBesideAPythonOfThePath) {
  namespace fs = std::filesystem;
  const fs::path root = fs::temp_directory_path() / ("kolo-libraries-" + std::to_string(getpid()));
  const fs::path folder = root / "lib/python3.11/site-packages/nvidia/cudnn/lib";
  fs::create_directories(root / "bin");
  fs::create_directories(folder);
  std::ofstream(root / "bin/python3") << "";
  fs::permissions(root / "bin/python3", fs::perms::owner_all);
  std::ofstream(folder / "libcudnn.so.9") << "";
  const std::string path = getenv("PATH");
  setenv("PATH", (root / "bin").c_str(), 1);
  const auto candidates = library_candidates("libcudnn.so.9", "");
  setenv("PATH", path.c_str(), 1);
  fs::remove_all(root);
  EXPECT_THAT(candidates,
              Contains(AllOf(StartsWith(root.string()), HasSubstr("nvidia/cudnn/lib/libcudnn.so.9"))));
}

}  // namespace
}  // namespace kolo
