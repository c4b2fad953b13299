#include <kolo/core/training/safetensors.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <utility>
#include <vector>

#include <kolo/core/base/crc32c.h>
#include <kolo/core/base/durable_file.h>
#include <kolo/core/base/error.h>

#include "tests/core/training/temporary_directory.h"

namespace kolo {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

// A file as another program would write it: `header` with its length before it and `data` behind it.
std::string file_bytes(const std::string& header, const std::string& data) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>(header.size() >> (8 * i) & 0xFF);
  return bytes + header + data;
}

std::string pad_to_eight(std::string header) {
  return header + std::string((8 - header.size() % 8) % 8, ' ');
}

SafetensorsSums write(const std::string& path, const std::map<std::string, Tensor>& tensors) {
  DurableFile file(path);
  SafetensorsSums sums = write_safetensors(file, tensors);
  file.finish();
  file.publish();
  return sums;
}

TEST(Safetensors, WritesSortedNamesRowMajorElementsAndOffsetsFromZero) {
  TemporaryDirectory folder;
  write(folder / "a",
        {{"w", Tensor::of<std::uint8_t>({2, 2}, {1, 2, 3, 4})}, {"b", Tensor::scalar<std::int64_t>(5)}});
  const std::string header =
      R"({"b":{"data_offsets":[0,8],"dtype":"I64","shape":[]},"w":{"data_offsets":[8,12],"dtype":"U8","shape":[2,2]}})";
  EXPECT_EQ(bytes_of_file(folder / "a"),
            file_bytes(pad_to_eight(header), std::string("\5\0\0\0\0\0\0\0", 8) + "\1\2\3\4"));
}

TEST(Safetensors, ReturnsTheSumsOfHeaderAndElements) {
  TemporaryDirectory folder;
  const SafetensorsSums sums = write(
      folder / "a", {{"t", Tensor::of<std::uint8_t>({9}, {'1', '2', '3', '4', '5', '6', '7', '8', '9'})}});
  EXPECT_EQ(sums.tensors.at("t"), 0xE3069283u);
  const std::string bytes = bytes_of_file(folder / "a");
  EXPECT_EQ(sums.file_bytes, bytes.size());
  EXPECT_EQ(sums.header, crc32c(bytes.data(), bytes.size() - 9));
}

TEST(Safetensors, ReadsEveryTypeThatItWrites) {
  TemporaryDirectory folder;
  std::map<std::string, Tensor> tensors = {{"empty", Tensor(DType::f32, {0, 3})}};
  for (const DType dtype : {DType::f32, DType::f64, DType::i32, DType::i64, DType::boolean, DType::u8,
                            DType::i8, DType::f16, DType::bf16}) {
    Tensor tensor(dtype, {3});
    for (std::size_t i = 0; i < tensor.bytes(); ++i) tensor.raw()[i] = static_cast<std::byte>(i % 2);
    tensors[name(dtype)] = tensor;
  }
  const SafetensorsSums sums = write(folder / "a", tensors);
  SafetensorsReader reader(folder / "a");
  ASSERT_EQ(reader.entries().size(), tensors.size());
  for (const auto& [name, tensor] : tensors) {
    const Tensor read = reader.read(name);
    EXPECT_EQ(read.dtype(), tensor.dtype()) << name;
    EXPECT_EQ(read.shape(), tensor.shape()) << name;
    EXPECT_EQ(crc32c(read.raw(), read.bytes()), sums.tensors.at(name)) << name;
    EXPECT_EQ(reader.crc32c(name), sums.tensors.at(name)) << name;
  }
}

TEST(Safetensors, ReadsAFileWithMetadataAndTensorsInAnyOrder) {
  TemporaryDirectory folder;
  write_bytes(
      folder / "a",
      file_bytes(R"({"__metadata__":{"format":"pt"},"a":{"dtype":"U8","shape":[2],"data_offsets":[1,3]},)"
                 R"("b":{"dtype":"BOOL","shape":[],"data_offsets":[0,1]}})",
                 "\1\2\3"));
  SafetensorsReader reader(folder / "a");
  EXPECT_THAT(reader.read("a").span<std::uint8_t>(), ElementsAre(2, 3));
  EXPECT_TRUE(reader.read("b").value<bool>());
}

TEST(Safetensors, RefusesStringTensors) {
  TemporaryDirectory folder;
  EXPECT_THAT(
      [&] {
        write(folder / "a", {{"names", Tensor::scalar<std::string>("x")}});
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("\"names\" has type string")));
}

TEST(Safetensors, NamesAMissingFile) {
  EXPECT_THAT([] { SafetensorsReader("/nowhere/a.safetensors"); },
              ThrowsMessage<NotFoundError>("/nowhere/a.safetensors: missing"));
}

TEST(Safetensors, RefusesAFolder) {
  TemporaryDirectory folder;
  EXPECT_THAT([&] { SafetensorsReader{folder.path()}; },
              ThrowsMessage<DataLossError>(HasSubstr("not a file")));
}

// The length is believed by no one: 2^63 bytes would have to be allocated for it.
TEST(Safetensors, ChecksTheHeadersLengthAgainstTheFileBeforeAllocating) {
  TemporaryDirectory folder;
  write_bytes(folder / "a", std::string("\0\0\0\0\0\0\0\x80", 8) + "{}");
  EXPECT_THAT([&] { SafetensorsReader(folder / "a"); },
              ThrowsMessage<DataLossError>(HasSubstr("9223372036854775808")));
}

TEST(SafetensorsReader, ReadsTensorsBesideOneOfATypeThatItHasNot) {
  TemporaryDirectory folder;
  write_bytes(folder / "a", file_bytes(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
                                       R"("ids":{"dtype":"U64","shape":[1],"data_offsets":[4,12]}})",
                                       "abcd12345678"));
  SafetensorsReader reader(folder / "a");
  EXPECT_THAT(reader.read("a").span<std::uint8_t>(), ElementsAre('a', 'b', 'c', 'd'));
  EXPECT_EQ(reader.entries().at("ids").unknown_type, "U64");
  EXPECT_THAT([&] { reader.read("ids"); },
              ThrowsMessage<UnimplementedError>(HasSubstr("\"ids\" has the type U64")));
}

// By the square of the tensors it would take minutes, which ends the test.
TEST(SafetensorsReader, ReadsAHeaderOfAHundredThousandTensors) {
  TemporaryDirectory folder;
  std::string header = "{";
  for (int i = 0; i < 100'000; ++i)
    header += fmt::format(R"({}"layer/{}/w":{{"dtype":"U8","shape":[1],"data_offsets":[{},{}]}})",
                          i == 0 ? "" : ",", i, i, i + 1);
  write_bytes(folder / "a", file_bytes(header + "}", std::string(100'000, 'x')));
  EXPECT_EQ(SafetensorsReader(folder / "a").entries().size(), 100'000U);
}

struct BadHeader {
  const char* text;
  const char* says;
};

// What the parser would keep of them is 16 to 42 times their size.
TEST(Safetensors, RefusesHeadersThatWouldTakeFarMoreMemoryThanTheyHaveBytes) {
  TemporaryDirectory folder;
  std::string objects, numbers;
  for (int i = 0; i < 200'000; ++i) objects += "{},", numbers += "1,";
  const auto refused = [&](const std::string& header, const std::string& says) {
    write_bytes(folder / "a", file_bytes(header, "abcd"));
    EXPECT_THAT([&] { SafetensorsReader(folder / "a"); }, ThrowsMessage<DataLossError>(HasSubstr(says)));
  };
  refused(R"({"a":[)" + objects + "{}]}", "200003 lists and objects in");
  refused(R"({"a":{"dtype":"U8","shape":[)" + numbers + R"(1],"data_offsets":[0,4]}})",
          "more than 64 values");
  std::string noted = R"({"__metadata__":{)";
  for (int i = 0; i < 500; ++i) noted += R"("key)" + std::to_string(i) + R"(":"a, [b, {c",)";
  noted.back() = '}';
  write_bytes(folder / "a",
              file_bytes(noted + R"(,"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})", "abcd"));
  EXPECT_NO_THROW(SafetensorsReader(folder / "a"));
}

class HostileHeader : public testing::TestWithParam<BadHeader> {};

// Each has four bytes of data behind it.
TEST_P(HostileHeader, IsRefused) {
  TemporaryDirectory folder;
  write_bytes(folder / "a", file_bytes(GetParam().text, "abcd"));
  EXPECT_THAT([&] { SafetensorsReader(folder / "a"); },
              ThrowsMessage<DataLossError>(HasSubstr(GetParam().says)));
}

INSTANTIATE_TEST_SUITE_P(
    , HostileHeader,
    testing::Values(
        BadHeader{"", "not that of a safetensors file"}, BadHeader{"{", "not that of a safetensors file"},
        BadHeader{"[]", "not a JSON object"}, BadHeader{"{}", "4 bytes of data"},
        BadHeader{R"({"a":1})", "not that of a safetensors file"},
        BadHeader{R"({"a":{"dtype":"U8","shape":[4]}})", "not that of a safetensors file"},
        BadHeader{R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,5]}})", "do not lie in the file"},
        BadHeader{R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[4,0]}})", "do not lie in the file"},
        BadHeader{R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4,4]}})", "do not lie in the file"},
        BadHeader{R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[-4,0]}})",
                  "neither a dimension nor an offset"},
        BadHeader{R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,1e30]}})",
                  "neither a dimension nor an offset"},
        BadHeader{R"({"a":{"dtype":"U8","shape":[3],"data_offsets":[0,4]}})",
                  "do not fit its type and shape"},
        BadHeader{R"({"a":{"dtype":"F32","shape":[4],"data_offsets":[0,4]}})",
                  "do not fit its type and shape"},
        BadHeader{R"({"a":{"dtype":"U8","shape":[4294967296,4294967296],"data_offsets":[0,0]}})",
                  "do not fit"},
        BadHeader{R"({"a":{"dtype":"U8","shape":[-4],"data_offsets":[0,4]}})",
                  "neither a dimension nor an offset"},
        BadHeader{R"({"a":{"dtype":"U8","shape":[3],"data_offsets":[1,4]}})", "gap or overlap"},
        BadHeader{
            R"({"a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]},"b":{"dtype":"U8","shape":[2],"data_offsets":[2,4]}})",
            "gap or overlap"},
        BadHeader{R"({"a":[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]})",
                  "deeper than"}));

}  // namespace
}  // namespace kolo
