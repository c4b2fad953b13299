#include <kolo/models/data.h>

#include <gmock/gmock.h>
#include "tests/models/idx_file.h"
#include "tests/support/paths.h"

#include <cstdlib>
#include <numeric>

#include <kolo/core/base/error.h>

namespace kolo::models {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;
using testing::ThrowsMessage;

class Idx : public testing::Test {
 protected:
  auto reading(int dimensions) {
    return [this, dimensions] { read_idx(file_, dimensions); };
  }

  TemporaryFolder folder_;
  const std::filesystem::path file_ = folder_ / "digits-idx";
};

TEST_F(Idx, ReadsPlainFile) {
  write_plain(file_, idx_bytes({2, 1, 3}, "abcdef"));
  const Tensor tensor = read_idx(file_, 3);
  EXPECT_EQ(tensor.shape(), (Shape{2, 1, 3}));
  EXPECT_THAT(tensor.span<std::uint8_t>(), ElementsAre('a', 'b', 'c', 'd', 'e', 'f'));
}

TEST_F(Idx, TellsGzipByItsContent) {
  write_gzip(file_, idx_bytes({3}, "xyz"));
  EXPECT_THAT(read_idx(file_, 1).span<std::uint8_t>(), ElementsAre('x', 'y', 'z'));
}

TEST_F(Idx, ReadsPayloadOfSeveralChunks) {
  std::string payload(3'000'000, '\0');
  for (std::size_t i = 0; i < payload.size(); ++i) payload[i] = static_cast<char>(i % 251);
  write_gzip(file_, idx_bytes({3'000'000}, payload));
  const Tensor tensor = read_idx(file_, 1);
  EXPECT_EQ(tensor.elements(), 3'000'000);
  EXPECT_EQ(tensor.span<std::uint8_t>()[2'999'999], 2'999'999 % 251);
}

TEST_F(Idx, ReadsNoItems) {
  write_plain(file_, idx_bytes({0, 28, 28}, ""));
  EXPECT_EQ(read_idx(file_, 3).shape(), (Shape{0, 28, 28}));
}

TEST_F(Idx, NamesMissingFile) {
  EXPECT_THAT(reading(1),
              ThrowsMessage<NotFoundError>(AllOf(StartsWith(file_.string()), HasSubstr("missing"))));
}

TEST_F(Idx, RefusesFolder) {
  std::filesystem::create_directory(file_);
  EXPECT_THAT(reading(1),
              ThrowsMessage<DataLossError>(AllOf(StartsWith(file_.string()), HasSubstr("not a file"))));
}

// A training that waited for a writer would not even hear a request to stop.
TEST_F(Idx, DoesNotWaitForAPipe) {
  ASSERT_EQ(mkfifo(file_.c_str(), 0600), 0);
  EXPECT_THAT(reading(1), ThrowsMessage<DataLossError>(HasSubstr("not a file")));
}

TEST_F(Idx, RefusesACompressedFileThatAnnouncesMoreThanItsSizeCanHold) {
  write_gzip(file_, idx_bytes({200'000'000}, std::string(1000, 'x')));
  EXPECT_THAT(reading(1), ThrowsMessage<DataLossError>(
                              AllOf(HasSubstr("200000000 items"), HasSubstr("at most 67108864"))));
}

TEST_F(Idx, NamesWrongMagic) {
  write_plain(file_, "\x89PNG and more");
  EXPECT_THAT(reading(3),
              ThrowsMessage<InvalidArgumentError>(
                  AllOf(StartsWith(file_.string()), HasSubstr("magic 0x89504e47"), HasSubstr("0x00000803"))));
}

TEST_F(Idx, NamesWrongElementType) {
  write_plain(file_, idx_bytes({1}, "abcd", 0x0d));
  EXPECT_THAT(reading(1),
              ThrowsMessage<InvalidArgumentError>(
                  AllOf(StartsWith(file_.string()), HasSubstr("element type 0x0d"), HasSubstr("0x08"))));
}

TEST_F(Idx, NamesWrongNumberOfDimensions) {
  write_plain(file_, idx_bytes({4}, "abcd"));
  EXPECT_THAT(reading(3), ThrowsMessage<InvalidArgumentError>(AllOf(
                              StartsWith(file_.string()), HasSubstr("0x00000801"), HasSubstr("0x00000803"))));
}

TEST_F(Idx, NamesCutAtEveryByteOfPlainFile) {
  const std::string whole = idx_bytes({2, 3}, "abcdef");
  for (std::size_t bytes = 0; bytes < whole.size(); ++bytes) {
    write_plain(file_, whole.substr(0, bytes));
    EXPECT_THAT(reading(2),
                ThrowsMessage<DataLossError>(AllOf(StartsWith(file_.string()), HasSubstr("truncated"))))
        << bytes << " bytes";
  }
}

TEST_F(Idx, NamesCutWithinGzipStreamAndItsTrailer) {
  write_gzip(file_, idx_bytes({64}, std::string(64, 'q')));
  for (auto bytes = std::filesystem::file_size(file_) - 1; bytes > 2; --bytes) {
    std::filesystem::resize_file(file_, bytes);
    EXPECT_THAT(reading(1),
                ThrowsMessage<DataLossError>(AllOf(StartsWith(file_.string()), HasSubstr("truncated"))))
        << bytes << " bytes";
  }
}

TEST_F(Idx, NamesFlippedBitInGzipStream) {
  write_gzip(file_, idx_bytes({64}, std::string(64, 'q')));
  const auto trailer = std::filesystem::file_size(file_) - 8;
  std::fstream file(file_, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(static_cast<std::streamoff>(trailer));
  const int sum = file.get();
  file.seekp(static_cast<std::streamoff>(trailer));
  file.put(static_cast<char>(sum ^ 1));
  file.close();
  EXPECT_THAT(reading(1),
              ThrowsMessage<DataLossError>(AllOf(StartsWith(file_.string()), HasSubstr("damaged"))));
}

TEST_F(Idx, NamesAnnouncedItemsBeyondTheFile) {
  write_plain(file_, idx_bytes({10'000, 28, 28}, std::string(784, 'p')));
  EXPECT_THAT(reading(3),
              ThrowsMessage<DataLossError>(AllOf(StartsWith(file_.string()), HasSubstr("10000 items"),
                                                 HasSubstr("the file holds 784 bytes"))));
}

// 2^61 bytes, which no machine has: were they allocated first, the error would be ResourceExhaustedError.
TEST_F(Idx, AllocatesNothingForAnnouncedItems) {
  write_plain(file_, idx_bytes({0x80000000, 0x40000000}, "abc"));
  EXPECT_THAT(reading(2), ThrowsMessage<DataLossError>(HasSubstr("a file of its size holds at most")));
}

TEST_F(Idx, SurvivesDimensionsWhoseProductOverflows) {
  write_plain(file_, idx_bytes({0xffffffff, 0xffffffff, 0xffffffff}, "abc"));
  EXPECT_THAT(reading(3), ThrowsMessage<DataLossError>(HasSubstr("holds at most")));
}

TEST_F(Idx, NamesTrailingBytes) {
  write_plain(file_, idx_bytes({3}, "abcd"));
  EXPECT_THAT(reading(1),
              ThrowsMessage<DataLossError>(AllOf(StartsWith(file_.string()), HasSubstr("trailing bytes"))));
}

namespace fs = std::filesystem;

// Works in a folder of its own and without KOLO_DATA_DIR; afterwards both are as before.
class Mnist : public testing::Test {
 protected:
  Mnist() {
    if (const char* set = std::getenv("KOLO_DATA_DIR")) variable_ = set;
    unsetenv("KOLO_DATA_DIR");
    fs::current_path(folder_.path());
  }
  ~Mnist() override {
    fs::current_path(before_);
    unsetenv("KOLO_DATA_DIR");
    if (variable_) setenv("KOLO_DATA_DIR", variable_->c_str(), 1);
  }

  void write_split(const std::string& prefix, std::uint32_t images, const std::string& labels) {
    write_gzip(folder_ / (prefix + "-images-idx3-ubyte.gz"),
               idx_bytes({images, 28, 28}, std::string(images * 784, 'i')));
    write_plain(folder_ / (prefix + "-labels-idx1-ubyte"),
                idx_bytes({static_cast<std::uint32_t>(labels.size())}, labels));
  }
  auto loading(Split split) {
    return [this, split] { load_mnist(folder_.path(), split); };
  }

  TemporaryFolder folder_;
  const fs::path before_ = fs::current_path();
  std::optional<std::string> variable_;
};

TEST_F(Mnist, LoadsPlainAndCompressedFiles) {
  write_split("train", 3, std::string("\x00\x09\x05", 3));
  const Dataset dataset = load_mnist(folder_.path(), Split::train);
  EXPECT_EQ(dataset.size(), 3);
  EXPECT_EQ(dataset.images.shape(), (Shape{3, 28, 28}));
  EXPECT_EQ(dataset.labels.span<std::uint8_t>()[1], 9);
  EXPECT_EQ(dataset.name, fs::path(folder_.path()).filename().string());
}

TEST_F(Mnist, NamesFilesAndCountsThatDiffer) {
  write_split("train", 3, "\x01\x02");
  EXPECT_THAT(loading(Split::train), ThrowsMessage<InvalidArgumentError>(
                                         AllOf(HasSubstr("train-images-idx3-ubyte.gz holds 3 images"),
                                               HasSubstr("train-labels-idx1-ubyte holds 2 labels"))));
}

TEST_F(Mnist, NamesLabelAboveNine) {
  write_split("t10k", 4, "\x01\x02\x0b\x0c");
  EXPECT_THAT(loading(Split::test),
              ThrowsMessage<InvalidArgumentError>(
                  AllOf(HasSubstr("t10k-labels-idx1-ubyte"), HasSubstr("label 11 at index 2"))));
}

TEST_F(Mnist, NamesImagesOfAnotherSize) {
  write_split("train", 1, "\x01");
  write_plain(folder_ / "train-images-idx3-ubyte", idx_bytes({1, 2, 3}, "abcdef"));
  EXPECT_THAT(loading(Split::train),
              ThrowsMessage<InvalidArgumentError>(HasSubstr("images of 2×3; expected 28×28")));
}

// 4 GiB follow, or do not.
TEST_F(Mnist, RefusesImagesOfAnotherSizeBeforeItReadsThem) {
  write_plain(folder_ / "train-images-idx3-ubyte", idx_bytes({4, 32768, 32768}, ""));
  write_plain(folder_ / "train-labels-idx1-ubyte", idx_bytes({4}, "abcd"));
  EXPECT_THAT(loading(Split::train),
              ThrowsMessage<InvalidArgumentError>(HasSubstr("images of 32768×32768; expected 28×28")));
}

TEST_F(Mnist, RefusesFilesWithoutImages) {
  write_split("train", 0, "");
  EXPECT_THAT(loading(Split::train), ThrowsMessage<InvalidArgumentError>(HasSubstr("holds no images")));
}

TEST_F(Mnist, NamesMissingFile) {
  write_split("train", 1, "\x01");
  fs::remove(folder_ / "train-labels-idx1-ubyte");
  EXPECT_THAT(loading(Split::train),
              ThrowsMessage<NotFoundError>(HasSubstr("train-labels-idx1-ubyte: no such file")));
}

TEST_F(Mnist, MayLackTheTestSplitButNotHalfOfIt) {
  write_split("train", 1, "\x01");
  const auto data = folder_.path().string();
  EXPECT_FALSE(load_digits(data, Split::test).has_value());
  write_split("t10k", 1, "\x01");
  EXPECT_TRUE(load_digits(data, Split::test).has_value());
  fs::remove(folder_ / "t10k-labels-idx1-ubyte");
  EXPECT_THAT([&] { load_digits(data, Split::test); },
              ThrowsMessage<NotFoundError>(HasSubstr("t10k-labels-idx1-ubyte")));
}

TEST_F(Mnist, EvaluationNeedsNoTrainingFiles) {
  write_split("t10k", 2, "\x01\x02");
  EXPECT_EQ(load_digits(folder_.path().string(), Split::test)->size(), 2);
}

TEST_F(Mnist, GivesWayToDrawnDigitsByName) {
  EXPECT_EQ(load_digits("generated", Split::test)->name, "generated digits");
}

TEST_F(Mnist, FindsTheFolderAskedForBeforeAllOthers) {
  fs::create_directories("data/mnist");
  fs::create_directories("mine");
  EXPECT_EQ(find_mnist("mine"), "mine");
}

TEST_F(Mnist, NamesFolderAskedForThatIsNone) {
  fs::create_directories("data/mnist");
  write_plain("file", "no folder");
  EXPECT_THAT([] { find_mnist("nowhere"); }, ThrowsMessage<NotFoundError>(HasSubstr("--data nowhere")));
  EXPECT_THAT([] { find_mnist("file"); }, ThrowsMessage<NotFoundError>(HasSubstr("--data file")));
}

TEST_F(Mnist, PrefersTheDataFolderOfTheEnvironment) {
  fs::create_directories("data/mnist");
  fs::create_directories("shared/mnist");
  setenv("KOLO_DATA_DIR", "shared", 1);
  EXPECT_EQ(find_mnist(std::nullopt), "shared/mnist");
}

TEST_F(Mnist, FallsBackToTheWorkingDirectory) {
  fs::create_directories("data/mnist");
  EXPECT_EQ(find_mnist(std::nullopt), "data/mnist");
  fs::create_directories("shared");
  setenv("KOLO_DATA_DIR", "shared", 1);
  EXPECT_EQ(find_mnist(std::nullopt), "data/mnist");
}

TEST_F(Mnist, RefusesDataFolderOfTheEnvironmentThatIsMissing) {
  fs::create_directories("data/mnist");
  setenv("KOLO_DATA_DIR", "/nonexistent", 1);
  EXPECT_THAT([] { find_mnist(std::nullopt); },
              ThrowsMessage<NotFoundError>(AllOf(HasSubstr("KOLO_DATA_DIR"), HasSubstr("/nonexistent"))));
}

TEST_F(Mnist, NamesBothPlacesWhereNothingIs) {
  EXPECT_THAT([] { find_mnist(std::nullopt); },
              ThrowsMessage<NotFoundError>(AllOf(HasSubstr("KOLO_DATA_DIR"), HasSubstr("data/mnist"))));
}

TEST(RealMnist, HasTheMeanInkThatIsPublished) {
  const char* set = std::getenv("KOLO_DATA_DIR");
  const fs::path folder = fs::path(set != nullptr ? set : source_path("../shared/data")) / "mnist";
  if (!fs::is_directory(folder)) GTEST_SKIP() << "no MNIST in " << folder;
  for (const Split split : {Split::train, Split::test}) {
    const Dataset dataset = load_mnist(folder, split);
    EXPECT_GE(dataset.size(), split == Split::train ? 7000 : 1500);
    const auto pixels = dataset.images.span<std::uint8_t>();
    const double mean =
        std::accumulate(pixels.begin(), pixels.end(), 0.0) / static_cast<double>(pixels.size()) / 255;
    EXPECT_NEAR(mean, 0.1307, 0.005);  // of the 60,000; a sample of 1,500 digits deviates by about 0.001
  }
}

}  // namespace
}  // namespace kolo::models
