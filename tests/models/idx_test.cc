#include <gmock/gmock.h>

#include <kolo/core/base/error.h>
#include <kolo/models/idx.h>

#include "tests/models/idx_file.h"

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
              ThrowsMessage<NotFoundError>(AllOf(StartsWith(file_.string()), HasSubstr("no such file"))));
}

TEST_F(Idx, RefusesFolder) {
  std::filesystem::create_directory(file_);
  EXPECT_THAT(reading(1),
              ThrowsMessage<UnavailableError>(AllOf(StartsWith(file_.string()), HasSubstr("directory"))));
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
  EXPECT_THAT(reading(2), ThrowsMessage<DataLossError>(HasSubstr("the file holds 3 bytes")));
}

TEST_F(Idx, SurvivesDimensionsWhoseProductOverflows) {
  write_plain(file_, idx_bytes({0xffffffff, 0xffffffff, 0xffffffff}, "abc"));
  EXPECT_THAT(reading(3), ThrowsMessage<DataLossError>(HasSubstr("truncated")));
}

TEST_F(Idx, NamesTrailingBytes) {
  write_plain(file_, idx_bytes({3}, "abcd"));
  EXPECT_THAT(reading(1),
              ThrowsMessage<DataLossError>(AllOf(StartsWith(file_.string()), HasSubstr("trailing bytes"))));
}

}  // namespace
}  // namespace kolo::models
