#include <kolo/models/data.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include <kolo/core/base/error.h>

#include "tests/core/training/temporary_directory.h"

namespace kolo::models {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

template <typename T>
std::string bytes_of(const std::vector<T>& values) {
  std::string bytes(values.size() * sizeof(T), '\0');
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

// As numpy.save of version 1.24 lays it out: magic, version, the header's length, the header, filled with
// blanks so that the elements begin at a multiple of 64.
std::string npy(std::string header, const std::string& elements, int version = 1) {
  const std::size_t length_bytes = version == 1 ? 2 : 4, before = 8 + length_bytes;
  while ((before + header.size() + 1) % 64 != 0) header += ' ';
  header += '\n';
  std::string bytes = "\x93NUMPY";
  bytes += static_cast<char>(version);
  bytes += '\0';
  for (std::size_t i = 0; i < length_bytes; ++i) bytes += static_cast<char>(header.size() >> (8 * i));
  return bytes + header + elements;
}

const char kMatrix[] = "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }";

class Npy : public testing::Test {
 protected:
  std::string write(const std::string& bytes) {
    std::ofstream(folder_ / "x.npy", std::ios::binary) << bytes;
    return folder_ / "x.npy";
  }
  void refuse_header(const std::string& header) {
    SCOPED_TRACE(header);
    EXPECT_THAT([&] { read_npy(write(npy(header, std::string(24, '\0')))); },
                ThrowsMessage<DataLossError>(AllOf(HasSubstr("x.npy"), HasSubstr("header is not that"))));
  }
  TemporaryDirectory folder_;
};

TEST_F(Npy, ReadsWhatNumPyWrites) {
  const Tensor x = read_npy(write(npy(kMatrix, bytes_of<float>({1.5, -2, 3, 0.25, 0.001F, 7}))));
  EXPECT_EQ(x.shape(), (Shape{3, 2}));
  EXPECT_THAT(x.span<float>(), ElementsAre(1.5F, -2, 3, 0.25F, 0.001F, 7));
}

TEST_F(Npy, ReadsEachTypeAndLaterVersions) {
  const auto header = [](const char* type) {
    return std::string("{'descr': '") + type + "', 'fortran_order': False, 'shape': (2,), }";
  };
  EXPECT_THAT(read_npy(write(npy(header("<f8"), bytes_of<double>({0.5, -1})))).span<double>(),
              ElementsAre(0.5, -1));
  EXPECT_THAT(read_npy(write(npy(header("<i4"), bytes_of<std::int32_t>({3, -1})))).span<std::int32_t>(),
              ElementsAre(3, -1));
  EXPECT_THAT(read_npy(write(npy(header("<i8"), bytes_of<std::int64_t>({3, 1}), 2))).span<std::int64_t>(),
              ElementsAre(3, 1));
  EXPECT_THAT(read_npy(write(npy(header("|u1"), "\x05\xff", 3))).span<std::uint8_t>(), ElementsAre(5, 255));
}

TEST_F(Npy, ReadsScalarsAndEmptyArrays) {
  EXPECT_EQ(
      read_npy(write(npy("{'descr': '<f4', 'fortran_order': True, 'shape': (), }", bytes_of<float>({7}))))
          .value<float>(),
      7);
  EXPECT_EQ(read_npy(write(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (0, 3), }", ""))).shape(),
            (Shape{0, 3}));
}

TEST_F(Npy, RefusesShapesBeyondAllBytesBesideAZero) {
  const std::string header =
      "{'descr': '<f4', 'fortran_order': False, 'shape': (0, 4611686018427387904, 4), }";
  EXPECT_THAT([&] { read_npy(write(npy(header, ""))); },
              ThrowsMessage<DataLossError>(AllOf(HasSubstr("x.npy"), HasSubstr("too many"))));
}

std::string header_of(const std::string& type, const std::string& shape, bool fortran = false) {
  return "{'descr': '" + type + "', 'fortran_order': " + (fortran ? "True" : "False") +
         ", 'shape': " + shape + ", }";
}

TEST_F(Npy, WidensWhatTensorsHaveNoTypeFor) {
  // 0x3e00 is 1.5, 0xc000 is -2 (IEEE 754 binary16).
  EXPECT_THAT(
      read_npy(write(npy(header_of("<f2", "(2,)"), std::string("\x00\x3e\x00\xc0", 4)))).span<float>(),
      ElementsAre(1.5F, -2));
  EXPECT_THAT(read_npy(write(npy(header_of("|i1", "(2,)"), "\x05\xff"))).span<std::int32_t>(),
              ElementsAre(5, -1));
  EXPECT_THAT(
      read_npy(write(npy(header_of("<i2", "(2,)"), bytes_of<std::int16_t>({-3, 300})))).span<std::int32_t>(),
      ElementsAre(-3, 300));
  EXPECT_THAT(
      read_npy(write(npy(header_of("<u2", "(1,)"), bytes_of<std::uint16_t>({65535})))).span<std::int32_t>(),
      ElementsAre(65535));
  EXPECT_THAT(read_npy(write(npy(header_of("<u4", "(1,)"), bytes_of<std::uint32_t>({4294967295U}))))
                  .span<std::int64_t>(),
              ElementsAre(4294967295));
  EXPECT_THAT(read_npy(write(npy(header_of("|b1", "(3,)"), std::string("\x01\x00\x07", 3)))).span<bool>(),
              ElementsAre(true, false, true));
}

TEST_F(Npy, ReadsTheOtherOrderOfBytes) {
  EXPECT_THAT(
      read_npy(write(npy(header_of(">f4", "(2,)"), std::string("\x3f\xc0\0\0\xc0\0\0\0", 8)))).span<float>(),
      ElementsAre(1.5F, -2));
  EXPECT_THAT(read_npy(write(npy(header_of(">f2", "(1,)"), std::string("\x3e\x00", 2)))).span<float>(),
              ElementsAre(1.5F));
  EXPECT_THAT(
      read_npy(write(npy(header_of(">i8", "(1,)"), std::string("\0\0\0\0\0\0\1\2", 8)))).span<std::int64_t>(),
      ElementsAre(258));
}

TEST_F(Npy, TransposesWhatLiesInFortransOrder) {
  // [[1,2],[3,4],[5,6]] column by column.
  const Tensor x =
      read_npy(write(npy(header_of("<f4", "(3, 2)", true), bytes_of<float>({1, 3, 5, 2, 4, 6}))));
  EXPECT_EQ(x.shape(), (Shape{3, 2}));
  EXPECT_THAT(x.span<float>(), ElementsAre(1, 2, 3, 4, 5, 6));
  // x[i,j,k] = 4i + 2j + k: the first index runs fastest.
  EXPECT_THAT(read_npy(write(npy(header_of("|u1", "(2, 2, 2)", true), std::string("\0\4\2\6\1\5\3\7", 8))))
                  .span<std::uint8_t>(),
              ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  EXPECT_EQ(read_npy(write(npy(header_of("<f4", "(0, 3)", true), ""))).shape(), (Shape{0, 3}));
}

TEST_F(Npy, NamesATypeThatItDoesNotTake) {
  for (const char* type : {"<U3", "|O", "<c8", "<M8", "|f4", "?f4", "<", "<f16", "<u8"})
    EXPECT_THAT([&] { read_npy(write(npy(header_of(type, "(1,)"), "1234"))); },
                ThrowsMessage<InvalidArgumentError>(AllOf(HasSubstr("x.npy"), HasSubstr(type))));
  EXPECT_THAT(
      [&] {
        read_npy(write(npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }", "1234")));
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("records")));
}

TEST_F(Npy, RefusesAFileThatHoldsMoreOrLessThanItsHeaderSays) {
  for (const int bytes : {23, 25, 0})
    EXPECT_THAT([&] { read_npy(write(npy(kMatrix, std::string(static_cast<std::size_t>(bytes), 'x')))); },
                ThrowsMessage<DataLossError>(
                    AllOf(HasSubstr("24 bytes"), HasSubstr("holds " + std::to_string(bytes)))));
  EXPECT_THAT(
      [&] {
        read_npy(
            write(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 9), }", "x")));
      },
      ThrowsMessage<DataLossError>(HasSubstr("too many")));
}

TEST_F(Npy, RefusesHeadersThatAreNone) {
  refuse_header("");
  refuse_header("{}");
  refuse_header("{'descr': '<f4', 'fortran_order': False, }");
  refuse_header("{'descr': '<f4', 'fortran_order': 0, 'shape': (3, 2), }");
  refuse_header("{'descr': '<f4', 'fortran_order': False, 'shape': (3, -2), }");
  refuse_header("{'descr': '<f4', 'fortran_order': False, 'shape': (3 2), }");
  refuse_header("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), 'shape': (3, 2), }");
  refuse_header("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), 'more': 1, }");
  refuse_header("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), } and more");
  refuse_header("{'descr: '<f4");
}

TEST_F(Npy, RefusesWhatIsNoSuchFile) {
  const std::string whole = npy(kMatrix, std::string(24, 'x'));
  for (const std::size_t bytes : {0, 5, 9, 10, 60, 127})
    EXPECT_THAT([&] { read_npy(write(whole.substr(0, bytes))); },
                ThrowsMessage<DataLossError>(HasSubstr("x.npy")))
        << bytes;
  std::string other = whole;
  other[1] = 'X';
  EXPECT_THROW(read_npy(write(other)), DataLossError);
  other = whole;
  other[6] = 9;
  EXPECT_THAT([&] { read_npy(write(other)); }, ThrowsMessage<DataLossError>(HasSubstr("format 1 to 3")));
  EXPECT_THROW(read_npy(folder_ / "none.npy"), NotFoundError);
}

}  // namespace
}  // namespace kolo::models
