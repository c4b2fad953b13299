// What is refused of the bytes that follow a control message, before memory is taken for it.
#include <kolo/core/cluster/rpc/payload.h>

#include <gmock/gmock.h>

#include <cstring>

#include <kolo/core/base/error.h>

#include "core/cluster/rpc/messages.pb.h"

namespace kolo::detail {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;
using Header = kolo::cluster::PayloadHeader;

class Kept final : public PayloadTarget {
 public:
  Tensor memory_for(std::size_t, DType dtype, const Shape& shape) override {
    ++asked;
    return {dtype, shape};
  }
  void on_tensor(std::size_t, Tensor tensor, bool, bool) override { value = std::move(tensor); }
  void on_bytes(PayloadKind, std::string text) override { bytes = std::move(text); }
  int asked = 0;
  Tensor value;
  std::string bytes;
};

std::string message(const Header& header, const std::string& rest = "") {
  const std::string text = header.SerializeAsString();
  const auto size = static_cast<std::uint32_t>(text.size());
  return std::string(reinterpret_cast<const char*>(&size), sizeof(size)) + text + rest;
}

Header floats(std::initializer_list<std::int64_t> dims, std::uint64_t bytes) {
  Header header;
  header.set_dtype(static_cast<std::uint32_t>(DType::f32));
  for (const std::int64_t dim : dims) header.add_dims(dim);
  header.set_bytes(bytes);
  return header;
}

class PayloadTest : public ::testing::Test {
 protected:
  void read(const std::string& text) {
    const std::string_view piece = text;
    reader_.read(std::span(&piece, 1));
  }
  template <typename Kind>
  void expect_refused(const std::string& text, const std::string& why) {
    EXPECT_THAT([&] { read(text); }, ThrowsMessage<Kind>(HasSubstr(why)));
    EXPECT_EQ(kept_.asked, 0);
  }
  Kept kept_;
  RpcLimits limits_{.graph_bytes = 1 << 20, .graph_nodes = 100, .tensor_bytes = 1 << 20};
  PayloadReader reader_{kept_, limits_};
};

TEST_F(PayloadTest, PutsPiecesAndChunksTogether) {
  const std::vector<float> numbers{1, 2, 3};
  const std::string bytes(reinterpret_cast<const char*>(numbers.data()), 12);
  const std::string first = message(floats({3}, 12));
  const std::string_view halves[] = {std::string_view(first).substr(0, 2), std::string_view(first).substr(2)};
  reader_.read(halves);
  EXPECT_FALSE(reader_.between());
  read(bytes.substr(0, 5));
  read(bytes.substr(5));
  EXPECT_TRUE(reader_.between());
  EXPECT_EQ(kept_.value.span<float>()[2], 3.f);
}

TEST_F(PayloadTest, RefusesAHeaderOfTooManyBytes) {
  expect_refused<ResourceExhaustedError>(message(floats({1 << 20}, 4 << 20)), "limited to 1048576; 4194304");
  expect_refused<InvalidArgumentError>(message(floats({7}, std::uint64_t{1} << 62)), "instead of 28");
}

TEST_F(PayloadTest, RefusesShapesThatAreNone) {
  expect_refused<InvalidArgumentError>(message(floats({-1, 4}, 16)), "dimension of -1");
  expect_refused<InvalidArgumentError>(message(floats({std::int64_t{1} << 40, std::int64_t{1} << 40}, 0)), "2^63");
  expect_refused<InvalidArgumentError>(message(floats({std::int64_t{1} << 62, 1}, 0)), "2^64");
  Header header = floats({}, 1);
  for (int i = 0; i < 255; ++i) header.add_dims(1);
  expect_refused<InvalidArgumentError>(message(header), "255 dimensions");
}

TEST_F(PayloadTest, RefusesUnknownTypesAndKinds) {
  Header header = floats({1}, 4);
  header.set_dtype(200);
  expect_refused<InvalidArgumentError>(message(header), "type 200");
  header.set_kind(static_cast<Header::Kind>(9));
  expect_refused<InvalidArgumentError>(message(header), "kind 9");
}

TEST_F(PayloadTest, RefusesAGraphOfTooManyNodes) {
  Header header;
  header.set_kind(Header::GRAPH);
  header.set_bytes(10);
  header.set_nodes(101);
  expect_refused<ResourceExhaustedError>(message(header), "a graph's nodes is limited to 100; 101");
  header.set_nodes(1);
  header.set_bytes((1 << 20) + 1);
  expect_refused<ResourceExhaustedError>(message(header), "a graph's bytes");
}

TEST_F(PayloadTest, RefusesWhatIsNoHeader) {
  expect_refused<InvalidArgumentError>("abc", "without a header");
  expect_refused<InvalidArgumentError>("\xff\xff\xff\xff", "payload header of");
  expect_refused<InvalidArgumentError>(std::string("\x02\0\0\0\xff\xff", 6), "are no kolo.cluster.PayloadHeader");
}

TEST_F(PayloadTest, RefusesMoreBytesThanAnnounced) {
  read(message(floats({2}, 8)));
  EXPECT_THAT([&] { read(std::string(9, 'x')); },
              ThrowsMessage<InvalidArgumentError>(AllOf(HasSubstr("9 bytes"), HasSubstr("lacks 8"))));
}

TEST_F(PayloadTest, RefusesStringsThatDoNotAddUp) {
  Header header;
  header.set_dtype(static_cast<std::uint32_t>(DType::string));
  header.add_dims(2);
  header.set_bytes(15);
  expect_refused<InvalidArgumentError>(message(header), "2 strings came in 15 bytes");
  header.set_bytes(17);
  std::string bytes(17, '\0');
  bytes[0] = 2;
  EXPECT_THROW(read(message(header, bytes)), InvalidArgumentError);
  header.set_dims(0, 1 << 19);
  header.set_bytes(4 << 20);
  EXPECT_THAT(
      [&] {
        const std::string text = message(header);
        const std::string_view piece = text;
        PayloadReader(kept_, limits_).read(std::span(&piece, 1));
      },
      ThrowsMessage<ResourceExhaustedError>(HasSubstr("memory in bytes")));
}

TEST_F(PayloadTest, RefusesABooleanThatIsNeither) {
  Header header = floats({1}, 1);
  header.set_dtype(static_cast<std::uint32_t>(DType::boolean));
  EXPECT_THAT([&] { read(message(header, "\x02")); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("neither 0 nor 1")));
}

}  // namespace
}  // namespace kolo::detail
