// Graph definitions that ask for what kernels could not do safely: sizes that overflow, and ops of the
// backward pass whose inputs no gradient function has made fit.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <limits>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include <kolo/core/base/error.h>
#include <kolo/core/graph/graph_def.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/control_flow.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/runtime/session.h>

namespace kolo {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;
using Ints = std::vector<std::int64_t>;
using Names = std::vector<std::string>;

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kBillion = 1'000'000'000;

NodeDef node(std::string name, std::string op, std::vector<std::string> inputs = {}, AttrMap attrs = {}) {
  return {.name = std::move(name),
          .op = std::move(op),
          .inputs = std::move(inputs),
          .device = "",
          .colocation_groups = {},
          .attrs = std::move(attrs),
          .output_shapes = {}};
}

struct In {
  Shape shape;
  DType dtype = DType::f32;
};

// A node, its inputs, and what kolo says of it.
struct HostileNode {
  std::string op;
  std::vector<In> inputs;
  AttrMap attrs;
  std::string text;
};
void PrintTo(const HostileNode& node, std::ostream* out) { *out << node.op << ": " << node.text; }

// The inputs are placeholders x0, x1, …
GraphDef definition_with(const HostileNode& hostile, bool known_shapes) {
  GraphDef definition;
  std::vector<std::string> names;
  for (const In& in : hostile.inputs) {
    names.push_back(fmt::format("x{}", names.size()));
    definition.nodes.push_back(
        node(names.back(), "Placeholder", {},
             {{"dtype", in.dtype}, {"shape", known_shapes ? in.shape : Shape::unknown_rank()}}));
  }
  definition.nodes.push_back(node("hostile", hostile.op, names, hostile.attrs));
  return definition;
}

void expect_import_refused(const HostileNode& hostile) {
  Graph graph;
  const Scope s(graph);
  EXPECT_THAT([&] { import_graph_def(s, definition_with(hostile, true)); },
              ThrowsMessage<InvalidArgumentError>(AllOf(HasSubstr("\"hostile\""), HasSubstr(hostile.text))));
}

using HostileSizes = ::testing::TestWithParam<HostileNode>;
TEST_P(HostileSizes, AreRefused) { expect_import_refused(GetParam()); }

const AttrMap kWindow = {{"strides", Ints{1, 1}}, {"padding", "VALID"}};
AttrMap window_with(AttrMap attrs, AttrMap more = {{"strides", Ints{1, 1}}, {"padding", "VALID"}}) {
  for (auto& [name, value] : more) attrs.emplace(name, value);
  return attrs;
}

INSTANTIATE_TEST_SUITE_P(
    Ops, HostileSizes,
    ::testing::Values(
        HostileNode{"Placeholder", {}, {{"dtype", DType::f32}, {"shape", Shape{kMost, -1}}}, "at most 2^48"},
        HostileNode{"Placeholder", {}, {{"dtype", DType::f32}, {"shape", Shape{0, kMost}}}, "at most 2^48"},
        HostileNode{"Fill",
                    {},
                    {{"dtype", DType::u8}, {"shape", Shape{kBillion, kBillion}}, {"value", 0.0}},
                    "at most 2^48"},
        HostileNode{
            "Fill", {}, {{"dtype", DType::f32}, {"shape", Shape{-1}}, {"value", 0.0}}, "must be fully known"},
        HostileNode{"Fill",
                    {},
                    {{"dtype", DType::string}, {"shape", Shape{2}}, {"value", 0.0}},
                    "string was asked for"},
        HostileNode{"Range",
                    {},
                    {{"dtype", DType::f64}, {"start", 0.0}, {"limit", 0x1p50}, {"delta", 1.0}},
                    "at most 2^48"},
        HostileNode{"Range",
                    {},
                    {{"dtype", DType::i32}, {"start", 0.0}, {"limit", 0x1p32}, {"delta", 0x1p31}},
                    "does not fit in 32 bits"},
        HostileNode{"Cast", {{{2}}}, {{"dtype", DType::string}}, "no type can be cast to it"},
        HostileNode{"Add", {{{kBillion, 1}}, {{1, kBillion}}}, {}, "at most 2^48"},
        HostileNode{
            "Pad", {{{3}}}, {{"before", Ints{kMost - 1}}, {"after", Ints{0}}}, "does not fit in 64 bits"},
        HostileNode{
            "Pad", {{{3}}}, {{"before", Ints{1}}, {"after", Ints{}}}, "1 paddings before and 0 after"},
        HostileNode{"Tile", {{{3}}}, {{"multiples", Ints{kMost / 2}}}, "does not fit in 64 bits"},
        HostileNode{"Tile", {{{3}}}, {{"multiples", Ints{kMost / 4}}}, "at most 2^48"},
        HostileNode{"BroadcastTo", {{{1}}}, {{"shape", Shape{kBillion, kBillion}}}, "at most 2^48"},
        HostileNode{"OneHot", {{{4}, DType::i32}}, {{"depth", kMost}}, "at most 2^48"},
        HostileNode{"Slice", {{{3}}}, {{"begin", Ints{1}}, {"size", Ints{kMost}}}, "do not lie within"},
        HostileNode{
            "Split", {{{4}}}, {{"parts", 1}, {"sizes", Ints{2, 2}}}, "2 sizes were given for 1 parts"},
        HostileNode{
            "Split", {{{4}}}, {{"parts", 3}, {"sizes", Ints{2, 2}}}, "2 sizes were given for 3 parts"},
        HostileNode{
            "Split", {{{4}}}, {{"parts", 2}, {"sizes", Ints{kMost, kMost}}}, "does not fit in 64 bits"},
        HostileNode{"Split", {{{-1}}}, {{"parts", 1 << 20}}, "at most 65536 are possible"},
        HostileNode{"UnsortedSegmentSum",
                    {{{2, 3}}, {{2}, DType::i32}},
                    {{"num_segments", -1}},
                    "must not be negative"},
        HostileNode{
            "UnsortedSegmentSum", {{{2, 3}}, {{2}, DType::i32}}, {{"num_segments", kMost}}, "at most 2^48"},
        HostileNode{"Dropout", {{{2}}}, {{"rate", 1.0}}, "in the range [0, 1), got 1"},
        HostileNode{"Resize",
                    {{{1, 1, 2, 2}}},
                    {{"size", Ints{kMost, 1}}, {"method", "nearest"}},
                    "must fit in 32 bits"},
        HostileNode{"Resize",
                    {{{1, 1, 2, 2}}},
                    {{"size", Ints{2, 2}}, {"method", "cubic"}},
                    "neither nearest nor bilinear"},
        HostileNode{"Conv2D",
                    {{{1, 1, 4, 4}}, {{1, 1, 2, 2}}},
                    {{"strides", Ints{kMost, 1}}, {"padding", "SAME"}},
                    "must fit in 32 bits"},
        HostileNode{"Conv2D",
                    {{{1, 1, 4, 4}}, {{0, 4, 2, 2}}},
                    window_with({{"groups", kMost / 2}}),
                    "does not fit in 64 bits"},
        HostileNode{"Conv2DTranspose",
                    {{{1, 1, 4, 4}}, {{1, 1, 2, 2}}},
                    window_with({{"groups", 2}}),
                    "only 1 is possible"},
        HostileNode{"Conv2DTranspose",
                    {{{1, 1, 1 << 30, 1 << 10}}, {{1, 1, 2, 2}}},
                    {{"strides", Ints{1 << 30, 1 << 30}}, {"padding", "SAME"}},
                    "at most 2^48"},
        HostileNode{"MaxPool",
                    {{{1, 1, 32, 32}}},
                    window_with({{"window", Ints{16, 16}}, {"cell_type", DType::u8}}),
                    "are numbered in u8"},
        HostileNode{"MaxPool",
                    {{{-1, -1, -1, -1}}},
                    window_with({{"window", Ints{1 << 30, 1 << 30}}, {"cell_type", DType::i32}}),
                    "below 2^31 i32"}));

// Ops that only gradient functions make, with inputs that do not fit each other. Shapes may come with the
// step.
using HostileGradient = ::testing::TestWithParam<HostileNode>;
TEST_P(HostileGradient, IsRefused) { expect_import_refused(GetParam()); }

TEST_P(HostileGradient, IsRefusedInAStepThatTellsTheShapes) {
  const HostileNode& hostile = GetParam();
  Graph graph;
  const Scope s(graph);
  import_graph_def(s, definition_with(hostile, false));
  Feeds feeds;
  for (std::size_t i = 0; i < hostile.inputs.size(); ++i)
    feeds.emplace_back(graph.find_output(fmt::format("x{}", i)),
                       Tensor::zeros(hostile.inputs[i].dtype, hostile.inputs[i].shape));
  Session session(graph);
  EXPECT_THAT([&] { session.run(graph.find_output("hostile"), feeds); },
              ThrowsMessage<InvalidArgumentError>(AllOf(HasSubstr("\"hostile\""), HasSubstr(hostile.text))));
}

HostileNode pair_of(const std::string& op, AttrMap attrs = {}) {
  return {op, {{{2, 3}}, {{2, 2}}}, std::move(attrs), "input 1 is [2,2]; it must be [2,3]"};
}
const AttrMap kSlice = {{"begin", Ints{1}}, {"end", Ints{3}}, {"strides", Ints{1}}};

INSTANTIATE_TEST_SUITE_P(OfOneShape, HostileGradient,
                         ::testing::Values(pair_of("GeluGrad"), pair_of("GeluTanhGrad"), pair_of("SwishGrad"),
                                           pair_of("EluGrad"), pair_of("SeluGrad"), pair_of("LeakyReluGrad"),
                                           pair_of("SoftplusGrad"), pair_of("Relu6Grad"), pair_of("TanhGrad"),
                                           pair_of("SigmoidGrad"), pair_of("ReluGrad"),
                                           pair_of("SoftmaxGrad"), pair_of("LogSoftmaxGrad"),
                                           HostileNode{"DropoutGrad",
                                                       {{{4}}, {{3}, DType::u8}},
                                                       {{"rate", 0.5}},
                                                       "input 1 is [3]; it must be [4]"}));

INSTANTIATE_TEST_SUITE_P(
    OfARule, HostileGradient,
    ::testing::Values(
        HostileNode{"ScaleRows", {{{3, 2}}, {{2}}}, {}, "input 1 is [2]; it must be [3]"},
        HostileNode{"BatchNormGrad",
                    {{{2, 3}}, {{3}}, {{2}}, {{3}}, {{2, 3}}},
                    {{"epsilon", 0.1}},
                    "its mean is [2]; that must be [3]"},
        HostileNode{"BatchNormGrad",
                    {{{2, 3}}, {{3}}, {{3}}, {{3}}, {{2, 2}}},
                    {{"epsilon", 0.1}},
                    "input 4 is [2,2]; it must be [2,3]"},
        HostileNode{
            "LayerNormGrad", {{{2, 3}}, {{2}}, {{2}}, {{2}}, {{2, 3}}}, {}, "input 1 is [2]; it must be [3]"},
        HostileNode{
            "LayerNormGrad", {{{2, 3}}, {{3}}, {{2}}, {{1}}, {{2, 3}}}, {}, "input 3 is [1]; it must be [2]"},
        HostileNode{"ConcatGrad",
                    {{{3}}, {{2}}, {{2}}},
                    {{"axis", 0}},
                    "input 0 is [3]; it must be [4], as those behind it joined"},
        HostileNode{"SliceGrad", {{{3}}, {{4}}}, {{"begin", Ints{2}}}, "does not lie within x, [4]"},
        HostileNode{"SliceGrad", {{{3}}, {{4}}}, {{"begin", Ints{kMost}}}, "does not lie within x, [4]"},
        HostileNode{"SliceGrad", {{{1, 3}}, {{4}}}, {{"begin", Ints{0}}}, "does not lie within x, [4]"},
        HostileNode{"StridedSliceGrad", {{{3}}, {{4}}}, kSlice, "input 0 is [3]; it must be [2]"},
        HostileNode{"TileGrad",
                    {{{5}}, {{2}}},
                    {{"multiples", Ints{3}}},
                    "input 0 is [5]; it must be [6], as x repeated"},
        HostileNode{
            "GatherGrad", {{{2, 3}}, {{4}, DType::i32}, {{5, 3}}}, {}, "input 0 is [2,3]; it must be [4,3]"},
        HostileNode{"TopKGrad",
                    {{{2, 3}}, {{2, 2}, DType::i32}, {{2, 4}}},
                    {},
                    "input 0 is [2,3]; it must be [2,2], as the indices"},
        HostileNode{"TopKGrad",
                    {{{3, 2}}, {{3, 2}, DType::i32}, {{2, 4}}},
                    {},
                    "input 1 is [3,2]; it must be [2,?], some columns of x"},
        HostileNode{
            "ReduceSumGrad", {{{3}}, {{2, 3}}}, {{"axes", Ints{1}}}, "input 0 is [3]; it must be [2]"},
        HostileNode{
            "ReduceProdGrad", {{{3}}, {{2, 3}}}, {{"axes", Ints{1}}}, "input 0 is [3]; it must be [2]"},
        HostileNode{"ReduceExtremumGrad",
                    {{{2}}, {{3}}, {{2, 3}}},
                    {{"axes", Ints{1}}},
                    "input 1 is [3]; it must be [2]"},
        HostileNode{"SumLike", {{{2, 3}}, {{2}}}, {}, "[2,3] cannot be summed to [2]"},
        HostileNode{"SumLike", {{{3}}, {{2, 3}}}, {}, "[3] cannot be summed to [2,3]"},
        HostileNode{"ResizeGrad",
                    {{{1, 1, 2, 2}}, {{1, 1, 3, 3}}},
                    {{"size", Ints{4, 4}}, {"method", "nearest"}},
                    "input 1 is [1,1,3,3]; it must be [1,1,4,4]"},
        HostileNode{"AvgPoolGrad",
                    {{{1, 1, 4, 4}}, {{1, 1, 4, 4}}},
                    window_with({{"window", Ints{2, 2}}}),
                    "input 1 is [1,1,4,4]; it must be [1,1,3,3]"},
        HostileNode{"MaxPoolGrad",
                    {{{1, 1, 4, 4}}, {{1, 1, 4, 4}, DType::u8}, {{1, 1, 3, 3}}},
                    window_with({{"window", Ints{2, 2}}}),
                    "input 1 is [1,1,4,4]; it must be [1,1,3,3]"},
        HostileNode{"Conv2DBackpropInput",
                    {{{1, 1, 4, 4}}, {{2, 1, 2, 2}}, {{1, 2, 4, 4}}},
                    kWindow,
                    "input 2 is [1,2,4,4]; it must be [1,2,3,3]"},
        HostileNode{"Conv2DBackpropFilter",
                    {{{1, 1, 4, 4}}, {{2, 1, 2, 2}}, {{1, 1, 3, 3}}},
                    kWindow,
                    "input 2 is [1,1,3,3]; it must be [1,2,3,3]"}));

TEST(HostileSlice, HasAStrideThatNothingCanBeMultipliedBy) {
  Graph graph;
  const Scope s(graph);
  for (const std::int64_t stride : {kMost, kLeast}) {
    const Output x = constant(s, Tensor::of<float>({2, 3}, {1, 2, 3, 4, 5, 6}));
    const Ints end = {stride > 0 ? kMost : kLeast, stride > 0 ? kMost : kLeast};
    const Output y =
        s.add("StridedSlice", {x}, {{"begin", Ints{1, 1}}, {"end", end}, {"strides", Ints{stride, stride}}});
    EXPECT_EQ(Session(graph).run(y).to_string(), Tensor::of<float>({1, 1}, {5}).to_string());
  }
}

TEST(HostileNames, AreNotTooLongOrTooDeep) {
  Graph graph;
  const Scope s(graph);
  std::string deep;
  for (int i = 0; i < 65; ++i) deep += "a/";
  for (const std::string& name : {std::string(4097, 'a'), deep + "b"}) {
    GraphDef definition;
    definition.nodes.push_back(node(name, "NoOp"));
    EXPECT_THAT([&] { import_graph_def(s, definition); },
                ThrowsMessage<InvalidArgumentError>(HasSubstr("at most 4096 and 64 are taken")));
  }
}

TEST(HostileRank, DoesNotGrowFromOpToOp) {
  Graph graph;
  const Scope s(graph);
  GraphDef definition;
  definition.nodes.push_back(
      node("x0", "Placeholder", {}, {{"dtype", DType::i32}, {"shape", Shape(Ints(100, -1))}}));
  for (int i = 1; i < 4; ++i) {
    const std::string before = fmt::format("x{}", i - 1);
    definition.nodes.push_back(node(fmt::format("x{}", i), "Gather", {before, before}));
  }
  EXPECT_THAT([&] { import_graph_def(s, definition); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("at most 254 are possible")));
}

TEST(HostileOutputs, AreNotTooManyInAll) {
  Graph graph;
  const Scope s(graph);
  GraphDef definition;
  definition.nodes.push_back(
      node("x", "Placeholder", {}, {{"dtype", DType::f32}, {"shape", Shape(Ints(254, -1))}}));
  for (int i = 0; i < 3; ++i)
    definition.nodes.push_back(node(fmt::format("s{}", i), "Split", {"x"}, {{"parts", 1 << 16}}));
  EXPECT_THAT([&] { import_graph_def(s, definition); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("too many dimensions in all")));
}

// What kernels read in a step.
struct HostileValues : ::testing::Test {
  Output number(float value) { return constant(s, value); }
  template <typename T>
  Output vector(const std::vector<T>& values) {
    return constant(s, Tensor::of<T>({static_cast<std::int64_t>(values.size())}, std::span<const T>(values)));
  }
  void expect_refused(const Output& y, const std::string& text) {
    EXPECT_THAT([&] { Session(graph).run(y); }, ThrowsMessage<InvalidArgumentError>(HasSubstr(text)));
  }
  Graph graph;
  Scope s{graph};
};

TEST_F(HostileValues, OfTopKGradAreColumns) {
  for (const std::int32_t index : {-1, 3}) {
    const Output y =
        s.add("TopKGrad", {vector<float>({1}), vector<std::int32_t>({index}), vector<float>({1, 2, 3})});
    expect_refused(y, fmt::format("Index {} at offset 0 in indices is out of range", index));
  }
}

TEST_F(HostileValues, OfGatherGradAreRows) {
  const Output y =
      s.add("GatherGrad", {vector<float>({1}), vector<std::int64_t>({kMost}), vector<float>({1, 2, 3})});
  expect_refused(y, "at offset 0 in indices is out of range");
}

TEST_F(HostileValues, OfMaxPoolGradAreCellsOfTheWindow) {
  const Output images = zeros(s, DType::f64, {1, 1, 2, 2}), dy = ones(s, DType::f64, {1, 1, 1, 1});
  const Output cells = constant(s, Tensor::of<std::uint8_t>({1, 1, 1, 1}, {200}));
  const Output dx = s.add("MaxPoolGrad", {images, cells, dy},
                          {{"window", Ints{2, 2}}, {"strides", Ints{2, 2}}, {"padding", "VALID"}});
  expect_refused(dx, "a cell lies outside of its window");
}

// A loop whose body doubles its variable while that is below 5, with other attributes than while_loop gives
// it.
struct HostileLoop : ::testing::Test {
  HostileLoop() {
    while_loop(
        s, [](const Scope& at, const Outputs& v) { return less(at, v[0], constant(at, 5.0f)); },
        [](const Scope& at, const Outputs& v) { return Outputs{add(at, v[0], v[0])}; }, {constant(s, 1.0f)});
    for (int id = 0; id < graph.num_nodes(); ++id)
      if (graph.node(id).op() == "While") loop = &graph.node(id);
  }
  Output loop_with(const std::string& attr, AttrValue value) {
    AttrMap attrs = loop->attrs();
    attrs.insert_or_assign(attr, std::move(value));
    return s.add("While", loop->inputs(), attrs);
  }
  void expect_refused(const Output& y, const std::string& text) {
    EXPECT_THAT([&] { Session(graph).run(y); }, ThrowsMessage<InvalidArgumentError>(HasSubstr(text)));
  }
  Graph graph;
  Scope s{graph};
  const Node* loop = nullptr;
};

TEST_F(HostileLoop, NamesAConditionThatIsNone) {
  expect_refused(loop_with("condition", loop->attr("results").get<Names>()[0]),
                 "which is f32; it must be bool");
}
TEST_F(HostileLoop, NamesAResultOfAnotherType) {
  expect_refused(loop_with("results", Names{loop->attr("condition").get<std::string>()}),
                 "which is bool; it must be f32");
}
TEST_F(HostileLoop, NamesAVariableOfAnotherType) {
  expect_refused(loop_with("variables", Names{loop->attr("condition").get<std::string>()}),
                 "which is bool; it must be f32");
}
TEST_F(HostileLoop, NamesTooFewTensorsForItsGradient) {
  AttrMap attrs = loop->attrs();
  for (const char* attr : {"backward", "next_backward", "totals", "next_totals"})
    attrs.emplace(attr, Names{});
  Outputs inputs = loop->inputs();
  const auto gradient = [&] { s.add("WhileGradient", inputs, attrs); };
  EXPECT_THAT(gradient, ThrowsMessage<InvalidArgumentError>(HasSubstr("the gradient of a loop has")));
  inputs.push_back(inputs[0]);
  EXPECT_THAT(gradient, ThrowsMessage<InvalidArgumentError>(
                            HasSubstr("names 0 tensors as backward; 1 would be right")));
}
TEST_F(HostileLoop, LiesInTooManyOthers) {
  Output inner;
  Names last = loop->attr("results").get<Names>();
  for (int i = 0; i < 12; ++i) {
    inner = loop_with("results", last);
    last = {inner.name()};
  }
  expect_refused(inner, "lies in 10 others");
}

}  // namespace
}  // namespace kolo
