#include <kolo/models/data.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include <kolo/core/base/error.h>

#include "tests/core/training/temporary_directory.h"

namespace kolo::models {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr int kPixels = 3 * 32 * 32;

// One record: all pixels of a channel are `red`, `green`, `blue`.
std::string record(int label, int red, int green, int blue) {
  std::string bytes(1, static_cast<char>(label));
  for (const int value : {red, green, blue}) bytes += std::string(kPixels / 3, static_cast<char>(value));
  return bytes;
}

class Cifar10 : public testing::Test {
 protected:
  void write(const std::string& name, const std::string& bytes) {
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
  }
  TemporaryDirectory folder_;
};

TEST_F(Cifar10, JoinsTheTrainingBatchesThatAreThere) {
  write("data_batch_1.bin", record(3, 1, 2, 3) + record(9, 4, 5, 6));
  write("data_batch_2.bin", record(0, 7, 8, 9));
  const Dataset train = load_cifar10(folder_.path(), Split::train);
  EXPECT_EQ(train.images.shape(), (Shape{3, 3, 32, 32}));
  EXPECT_THAT(train.labels.span<std::uint8_t>(), ElementsAre(3, 9, 0));
  const std::uint8_t* const last = train.images.data<std::uint8_t>() + 2 * kPixels;
  EXPECT_EQ(last[0], 7);
  EXPECT_EQ(last[32 * 32], 8);
  EXPECT_EQ(last[kPixels - 1], 9);
}

TEST_F(Cifar10, RefusesBatchesWithAGap) {
  write("data_batch_1.bin", record(3, 1, 2, 3));
  write("data_batch_3.bin", record(1, 0, 0, 0));
  EXPECT_THAT([&] { load_cifar10(folder_.path(), Split::train); },
              ThrowsMessage<NotFoundError>(AllOf(HasSubstr("data_batch_2.bin: it is not there"),
                                                 HasSubstr("and data_batch_3.bin is"))));
}

TEST_F(Cifar10, IsToldByTheFilesOfAFolder) {
  EXPECT_FALSE(is_cifar10(folder_.path()));
  write("data_batch_1.bin", record(3, 1, 2, 3));
  const DataRequest request{.data = folder_.path(), .sample = {3, 32, 32}};
  EXPECT_EQ(load_data(request, Split::train)->kind().name, "CIFAR-10");
  EXPECT_EQ(load_data(request, Split::test), nullptr);
  write("test_batch.bin", record(3, 1, 2, 3) + record(3, 1, 2, 3));
  EXPECT_EQ(load_data(request, Split::test)->size(), 2);
}

TEST_F(Cifar10, NamesAFileThatEndsWithinARecord) {
  write("data_batch_1.bin", record(3, 1, 2, 3) + "x");
  EXPECT_THAT([&] { load_cifar10(folder_.path(), Split::train); },
              ThrowsMessage<DataLossError>(AllOf(HasSubstr("data_batch_1.bin"), HasSubstr("3074 bytes"))));
  write("data_batch_1.bin", "");
  EXPECT_THROW(load_cifar10(folder_.path(), Split::train), DataLossError);
}

TEST_F(Cifar10, NamesTheRecordOfALabelAboveNine) {
  write("test_batch.bin", record(3, 1, 2, 3) + record(10, 1, 2, 3));
  EXPECT_THAT([&] { load_cifar10(folder_.path(), Split::test); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("label 10 in record 1")));
}

TEST_F(Cifar10, NamesAFileThatIsNotThere) {
  EXPECT_THAT([&] { load_cifar10(folder_.path(), Split::test); },
              ThrowsMessage<NotFoundError>(HasSubstr("test_batch.bin")));
}

}  // namespace
}  // namespace kolo::models
