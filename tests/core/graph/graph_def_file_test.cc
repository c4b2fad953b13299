#include <kolo/core/graph/graph_def.h>

#include <gmock/gmock.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>

#include <kolo/core/base/crc32c.h>
#include <kolo/core/base/error.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/variables.h>

#include "tests/core/training/temporary_directory.h"

namespace kolo {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using ::testing::ThrowsMessage;

GraphDef of_every_kind() {
  GraphDef definition;
  definition.seed = -5;
  definition.nodes.push_back({.name = "a",
                              .op = "Op",
                              .inputs = {"b:2", "^c"},
                              .device = "/device:GPU:1",
                              .colocation_groups = {"loc:@b"},
                              .attrs = {{"flag", true},
                                        {"count", std::numeric_limits<std::int64_t>::min()},
                                        {"real", 0.1},
                                        {"text", std::string("\0\xff", 2)},
                                        {"type", DType::f16},
                                        {"shape", Shape({2, -1})},
                                        {"any_rank", Shape::unknown_rank()},
                                        {"tensor", Tensor::of<float>({2}, {1, -0.0f})},
                                        {"empty", Tensor(DType::i32, {0, 3})},
                                        {"flags", Tensor::of<bool>({2}, {true, false})},
                                        {"words", Tensor::of<std::string>({2}, {"x", ""})},
                                        {"ints", std::vector<std::int64_t>{-1, 5}},
                                        {"no_ints", std::vector<std::int64_t>{}},
                                        {"texts", std::vector<std::string>{"\xff", ""}},
                                        {"no_texts", std::vector<std::string>{}}},
                              .output_shapes = {Shape(), Shape::unknown_rank()}});
  definition.collections["mine\xff"] = {"a"};
  return definition;
}

// Bytes with the sum that belongs to them: damage that only the parser can find.
std::string summed(std::string bytes) {
  const std::uint32_t sum = crc32c(bytes.data(), bytes.size());
  bytes.push_back('\x7d');
  bytes.append(reinterpret_cast<const char*>(&sum), sizeof sum);
  return bytes;
}

template <typename ExpectedError = DataLossError, typename Matcher>
void expect_refused(const std::string& bytes, const Matcher& text) {
  EXPECT_THAT([&] { decode_graph_def(bytes); }, ThrowsMessage<ExpectedError>(text));
}

// The text of a definition with one node that has one attribute.
std::string with_attr(const std::string& value) {
  return R"(node { name: "n" op: "Op" attr { key: "k" value { )" + value + " } } } versions { producer: 1 }";
}
template <typename Matcher>
void expect_attr_refused(const std::string& value, const Matcher& text) {
  EXPECT_THAT([&] { graph_def_from_text(with_attr(value)); },
              ThrowsMessage<DataLossError>(AllOf(HasSubstr("node \"n\": attribute \"k\""), text)));
}

TEST(GraphDefBytes, ComeBackAsTheyWere) {
  EXPECT_EQ(decode_graph_def(encode_graph_def(of_every_kind())), of_every_kind());
}

TEST(GraphDefBytes, AreEqualForEqualGraphs) {
  const auto bytes = [] {
    Graph graph;
    const Scope s(graph);
    const Variable v(s.named("v"), zeros(s, DType::f32, {3}));
    assign_add(s.control_dependencies({v.initializer()}), v, ones(s, DType::f32, {3}));
    return encode_graph_def(to_graph_def(graph));
  };
  EXPECT_EQ(bytes(), bytes());
}

TEST(GraphDefBytes, KeepTheBitsOfNaN) {
  GraphDef definition = of_every_kind();
  const double nan = std::nan("5");
  definition.nodes[0].attrs.insert_or_assign("real", nan);
  const double back = decode_graph_def(encode_graph_def(definition)).nodes[0].attrs.at("real").get<double>();
  EXPECT_EQ(std::memcmp(&back, &nan, sizeof nan), 0);
}

TEST(GraphDefBytes, AreRefusedWhenOneOfThemChangedOrIsMissing) {
  const std::string bytes = encode_graph_def(of_every_kind());
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    std::string damaged = bytes;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x10);
    EXPECT_THROW(decode_graph_def(damaged), DataLossError) << "byte " << i;
    EXPECT_THROW(decode_graph_def(bytes.substr(0, i)), DataLossError) << "cut to " << i;
  }
}

TEST(GraphDefBytes, SayWhatIsWrongWithThem) {
  expect_refused("", HasSubstr("there is no checksum at the end"));
  std::string damaged = encode_graph_def(of_every_kind());
  damaged[3] = 'x';
  expect_refused(damaged, HasSubstr("it is damaged"));
  expect_refused(summed(""), HasSubstr("there is no version in it"));
  expect_refused(summed("\x0a\x05x"), HasSubstr("protobuf cannot read it"));
}

TEST(GraphDefBytes, MayHoldAMillionNodes) {
  std::string nodes;
  for (std::int64_t i = 0; i <= kMaxGraphDefNodes; ++i) nodes += std::string("\x0a\x00", 2);
  expect_refused(summed(nodes), HasSubstr("more than 1000000 nodes"));
}

TEST(GraphDefBytes, OfANewerKoloAreRefused) {
  GraphDef definition;
  definition.min_consumer = kGraphDefVersion + 1;
  expect_refused<FailedPreconditionError>(encode_graph_def(definition),
                                          HasSubstr("it needs a reader of version 2"));
}

TEST(GraphDefText, ComesBackAsItWas) {
  EXPECT_EQ(graph_def_from_text(graph_def_text(of_every_kind())), of_every_kind());
}

TEST(GraphDefText, ReadsAsTensorFlowsDoes) {
  GraphDef definition;
  definition.nodes = {{.name = "y",
                       .op = "Neg",
                       .inputs = {"x:1"},
                       .device = "/device:GPU:0",
                       .colocation_groups = {},
                       .attrs = {{"dtype", DType::f32}},
                       .output_shapes = {}}};
  EXPECT_EQ(graph_def_text(definition), R"(node {
  name: "y"
  op: "Neg"
  input: "x:1"
  device: "/device:GPU:0"
  attr {
    key: "dtype"
    value {
      type: DT_FLOAT
    }
  }
}
versions {
  producer: 1
  min_consumer: 1
}
)");
}

TEST(GraphDefText, IsRefusedWithLineAndColumn) {
  EXPECT_THAT([] { graph_def_from_text("versions { producer: 1 }\nnod { }"); },
              ThrowsMessage<InvalidArgumentError>(StartsWith("line 2, column 5: ")));
}

TEST(HostileTensor, NeedsAsManyBytesAsItsShapeTells) {
  expect_attr_refused("tensor { dtype: DT_FLOAT shape { size: 1000000000000 } content: '1234' }",
                      HasSubstr("has 4 bytes; 4000000000000 would be right"));
  expect_attr_refused("tensor { dtype: DT_STRING shape { size: 2 } string_val: 'a' }",
                      HasSubstr("has 1 texts; 2 would be right"));
}

TEST(HostileTensor, MayNotOverflow) {
  expect_attr_refused("tensor { dtype: DT_INT64 shape { size: 4611686018427387904 size: 4 } }",
                      HasSubstr("is too large"));
}

TEST(HostileTensor, NeedsAKnownShapeAndType) {
  expect_attr_refused("tensor { dtype: DT_FLOAT shape { size: -1 } }", HasSubstr("must be fully known"));
  expect_attr_refused("tensor { dtype: DT_FLOAT shape { unknown_rank: true } }",
                      HasSubstr("must be fully known"));
  expect_attr_refused("tensor { shape { } content: '1234' }", HasSubstr("0 is the number of no data type"));
}

TEST(HostileTensor, OfBoolHoldsZerosAndOnesOnly) {
  expect_attr_refused("tensor { dtype: DT_BOOL shape { size: 1 } content: '\\002' }",
                      HasSubstr("the byte 2"));
}

TEST(HostileShape, HasNoDimensionBelowMinusOneAndNotTooManyOfThem) {
  expect_attr_refused("shape { size: -2 }", HasSubstr("a dimension of -2"));
  std::string sizes;
  for (int i = 0; i <= kMaxGraphDefRank; ++i) sizes += "size: 1 ";
  expect_attr_refused("shape { " + sizes + "}", HasSubstr("255 dimensions; at most 254"));
}

TEST(HostileAttribute, NeedsAValue) { expect_attr_refused("", HasSubstr("no value")); }

struct GraphDefFile : ::testing::Test {
  TemporaryDirectory folder;
};

TEST_F(GraphDefFile, IsTextOrBytesByItsEnding) {
  for (const char* name : {"graph.pb", "graph.pbtxt"}) {
    write_graph_def(of_every_kind(), folder / name);
    EXPECT_EQ(read_graph_def(folder / name), of_every_kind());
  }
  EXPECT_THAT(bytes_of_file(folder / "graph.pbtxt"), StartsWith("node {\n"));
  EXPECT_EQ(folder.names().size(), 2u);
}

TEST_F(GraphDefFile, NamesThePathThatIsMissing) {
  EXPECT_THAT([&] { read_graph_def(folder / "none.pb"); },
              ThrowsMessage<NotFoundError>(HasSubstr(folder / "none.pb")));
}

TEST_F(GraphDefFile, NamesThePathThatIsDamaged) {
  write_bytes(folder / "bad.pb", "bad");
  EXPECT_THAT([&] { read_graph_def(folder / "bad.pb"); },
              ThrowsMessage<DataLossError>(StartsWith(folder / "bad.pb")));
}

TEST_F(GraphDefFile, CannotBeAFolderOrLieInNone) {
  EXPECT_THAT([&] { read_graph_def(folder.path()); }, ThrowsMessage<DataLossError>(HasSubstr("not a file")));
  EXPECT_THAT([&] { write_graph_def({}, folder / "none/graph.pb"); },
              ThrowsMessage<FailedPreconditionError>(HasSubstr("none/graph.pb")));
}

}  // namespace
}  // namespace kolo
