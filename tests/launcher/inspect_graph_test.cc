#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <string>

#include <kolo/core/graph/graph_def.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/linalg.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/ops/variables.h>
#include <kolo/core/training/rank_state.h>

#include "tests/launcher/inspect_fixture.h"

namespace kolo {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

class InspectGraph : public InspectFixture {
 protected:
  InspectGraph() {
    Graph graph;
    const Scope s(graph);
    const Output a = constant(s.named("a"), 1.0f);
    neg(s.device("/gpu:1").control_dependencies({no_op(s.named("first"))}).named("b"), a);
    graph.set_seed(3);
    write_graph(graph, folder_ / "graph.pb");
    write_graph(graph, folder_ / "graph.pbtxt");
  }
};

TEST_F(InspectGraph, ListsNodesInTheirOrder) {
  EXPECT_EQ(inspect("graph " + (folder_ / "graph.pb")), 0) << err_;
  EXPECT_EQ(out_,
            "3 nodes of 3 ops, seed 3\n"
            "a      Const  ()\n"
            "first  NoOp   ()\n"
            "b      Neg    (a, ^first)  /device:GPU:1\n");
}

TEST_F(InspectGraph, PrintsOneLineOfJson) {
  EXPECT_EQ(inspect("graph --json " + (folder_ / "graph.pb")), 0) << err_;
  EXPECT_EQ(std::count(out_.begin(), out_.end(), '\n'), 1);
  const auto json = nlohmann::json::parse(out_);
  EXPECT_EQ(json["seed"], 3);
  EXPECT_EQ(json["nodes"][2]["inputs"], nlohmann::json({"a", "^first"}));
  // The sum of the four bytes 00 00 80 3f.
  EXPECT_EQ(json["nodes"][0]["attrs"]["value"].dump(), R"({"crc32c":"dd54c4ab","dtype":"f32","shape":[]})");
}

// With a plug-in or, where the build has none, without.
TEST_F(InspectGraph, ListsWhatWouldStayOnTheCpuBesideAGpu) {
  Graph graph;
  const Scope s(graph);
  neg(s.named("on_gpu"), constant(s.named("one"), 1.0f));
  const Output wide = constant(s.named("wide"), Tensor::zeros(DType::f64, {1, 1}));
  matmul(s.named("product"), wide, wide);
  neg(s.device("/cpu:0").named("pinned"), constant(s.device("/cpu:0").named("two"), 2.0f));
  write_graph(graph, folder_ / "placed.pb");
  if (inspect("graph --device gpu " + (folder_ / "placed.pb")) != 0) {
    EXPECT_THAT(err_, HasSubstr("kolo-inspect: libkolo_cuda.so is neither in "));
    return;
  }
  EXPECT_EQ(out_,
            "4 of 6 nodes would stay on the CPU beside a GPU\n"
            "wide     Const   it belongs to nodes that are\n"
            "product  MatMul  no kernel for GPUs takes f64\n"
            "two      Const   asked for\n"
            "pinned   Neg     asked for\n");
}

TEST_F(InspectGraph, RefusesADeviceThatIsNoGpu) {
  EXPECT_EQ(inspect("graph --device tpu " + (folder_ / "graph.pb")), 2);
  EXPECT_THAT(err_, HasSubstr("--device \"tpu\" is not valid; it must be gpu"));
}

TEST_F(InspectGraph, DrawsDevicesAsBoxesAndControlEdgesDashed) {
  EXPECT_EQ(inspect("graph --dot " + (folder_ / "graph.pb")), 0) << err_;
  EXPECT_EQ(out_,
            "digraph kolo {\n"
            "  node [shape=box];\n"
            "  \"a\" [label=\"a\\nConst\"];\n"
            "  \"first\" [label=\"first\\nNoOp\"];\n"
            "  subgraph cluster_0 {\n"
            "  label=\"/device:GPU:1\";\n"
            "  \"b\" [label=\"b\\nNeg\"];\n"
            "  }\n"
            "  \"a\" -> \"b\";\n"
            "  \"first\" -> \"b\" [style=dashed];\n"
            "}\n");
}

TEST_F(InspectGraph, PrintsTheTextOfABinaryFileAndTakesTextItself) {
  EXPECT_EQ(inspect("graph --text " + (folder_ / "graph.pb")), 0) << err_;
  EXPECT_EQ(out_, bytes_of_file(folder_ / "graph.pbtxt"));
  EXPECT_EQ(inspect("graph --text " + (folder_ / "graph.pbtxt")), 0) << err_;
}

TEST_F(InspectGraph, EndsWithOneLineForADamagedFile) {
  std::string bytes = bytes_of_file(folder_ / "graph.pb");
  bytes[2] = 'x';
  write_bytes(folder_ / "graph.pb", bytes);
  EXPECT_EQ(inspect("graph " + (folder_ / "graph.pb")), 1);
  EXPECT_THAT(out_, IsEmpty());
  EXPECT_THAT(err_, AllOf(HasSubstr(folder_ / "graph.pb"), HasSubstr("it is damaged")));
  EXPECT_EQ(std::count(err_.begin(), err_.end(), '\n'), 1);
}

TEST_F(InspectGraph, RefusesABadCommandLineWithCodeTwo) {
  EXPECT_EQ(inspect("graph"), 2);
  EXPECT_EQ(inspect("graph a b"), 2);
  EXPECT_EQ(inspect("graph --json --dot a"), 2);
  EXPECT_EQ(inspect("graph --dott a"), 2);
  EXPECT_THAT(err_, HasSubstr("did you mean \"--dot\"?"));
}

TEST_F(InspectGraph, NamesTheKernelOfEachNode) {
  Graph graph;
  const Scope s(graph);
  const Output x = placeholder(s.named("x"), DType::f32, {-1, 3});
  neg(s.device("/gpu:1").named("minus"), x);
  write_graph(graph, folder_ / "kernels.pb");
  EXPECT_EQ(inspect("graph --kernels " + (folder_ / "kernels.pb")), 0) << err_;
  EXPECT_THAT(out_, AllOf(HasSubstr("1 kernels; sizes that only a step tells are taken as 64\n"),
                          testing::ContainsRegex("\nminus  Neg  elementwise_kernels.cc:[0-9]+\n")));
}

TEST_F(InspectGraph, PassesOverNodesThatAreNeverRun) {
  Graph graph;
  const Scope s(graph);
  const Variable v(s.named("v"), constant(s, Tensor::of<float>({2}, {1, 2})));
  set_rank_state(graph, v, {.kind = RankState::Kind::part, .whole = {"whole", {4}}, .range = {0, 2}});
  write_graph(graph, folder_ / "notes.pb");
  EXPECT_EQ(inspect("graph --kernels " + (folder_ / "notes.pb")), 0) << err_;
}

}  // namespace
}  // namespace kolo
