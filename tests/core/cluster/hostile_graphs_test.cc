// Random graphs against a live server: whatever a client sends, the server answers, and lives. A short form
// runs with the other tests; scripts/check_deep fuzz gives it minutes. KOLO_FUZZ_SECONDS, KOLO_FUZZ_SEED.
#include <gmock/gmock.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <random>

#include <kolo/core/base/env.h>
#include <kolo/core/cluster/client/check_server.h>
#include <kolo/core/cluster/rpc/channel.h>
#include <kolo/core/graph/graph.h>
#include <kolo/core/graph/graph_def.h>
#include <kolo/core/graph/op_schema.h>

#include "tests/core/cluster/server_process.h"
#include "tests/core/cluster/servers_in_process.h"
#include "tests/core/cluster/typed_calls.h"

namespace kolo {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kPatience{300};  // with a run: some wait for what never comes
constexpr int kAskedEvery = 50;                      // graphs between two questions for the status

// Sizes are small or absurd: what lies between would take the memory of the machine that tests.
class RandomGraphs {
 public:
  explicit RandomGraphs(std::uint64_t seed) : random_(seed), ops_(registered_ops()) {}

  /// Half of them hold only nodes that fit together, so that they are run; the others are as they come.
  GraphDef next() {
    GraphDef graph;
    Graph fitting;
    const bool checked = coin();
    const int nodes = pick(std::vector<int>{1, 3, 6, 12, 24});
    for (int tries = 0; static_cast<int>(graph.nodes.size()) < nodes && tries < 8 * nodes; ++tries) {
      NodeDef node = random_node(graph);
      if (!checked || fits(fitting, node)) graph.nodes.push_back(std::move(node));
    }
    return graph;
  }
  bool coin() { return random_() % 2 == 0; }
  template <typename T>
  const T& pick(const std::vector<T>& from) {
    return from[random_() % from.size()];
  }

 private:
  NodeDef random_node(const GraphDef& graph) {
    NodeDef node;
    node.name = "n" + std::to_string(graph.nodes.size());
    node.op = pick(ops_);
    const OpSchema& schema = find_op(node.op);
    const std::size_t inputs =
        schema.inputs().empty() ? 0 : schema.inputs().size() + (coin() ? 0 : random_() % 3);
    for (std::size_t i = 0; i < inputs && !graph.nodes.empty(); ++i)
      node.inputs.push_back(pick(graph.nodes).name + (random_() % 8 == 0 ? ":1" : ""));
    for (const auto& [name, spec] : schema.attrs())
      if (spec.required || coin()) node.attrs.insert_or_assign(name, like(spec.value));
    if (random_() % 8 == 0)
      node.device = pick(std::vector<std::string>{"/job:ps/task:0", "/device:GPU:7", "?"});
    return node;
  }
  AttrValue like(const AttrValue& value) {
    const auto number = [this] {
      return pick(std::vector<std::int64_t>{-1, 0, 1, 2, 3, 7, std::int64_t{1} << 48, INT64_MAX, INT64_MIN});
    };
    return std::visit(
        [&](const auto& old) -> AttrValue {
          using Type = std::decay_t<decltype(old)>;
          if constexpr (std::is_same_v<Type, bool>) return coin();
          else if constexpr (std::is_same_v<Type, std::int64_t>) return number();
          else if constexpr (std::is_same_v<Type, double>)
            return pick(std::vector<double>{-1, 0, 0.5, 1e308, -INFINITY});
          else if constexpr (std::is_same_v<Type, std::string>)
            return coin() ? old : pick(std::vector<std::string>{"", "v", "a;b", "valid", "same"});
          else if constexpr (std::is_same_v<Type, DType>)
            return pick(std::vector<DType>{DType::f32, DType::f32, DType::f64, DType::i64, DType::u8,
                                           DType::string, DType::boolean});
          else if constexpr (std::is_same_v<Type, Shape>) return random_shape();
          else if constexpr (std::is_same_v<Type, Tensor>) return Tensor::zeros(DType::f32, small_shape());
          else if constexpr (std::is_same_v<Type, std::vector<std::int64_t>>) {
            std::vector<std::int64_t> numbers(random_() % 5);
            for (auto& one : numbers) one = number();
            return numbers;
          } else return old;
        },
        value.value());
  }
  Shape small_shape() {
    std::vector<std::int64_t> dims(random_() % 4);
    for (auto& dim : dims) dim = pick(std::vector<std::int64_t>{0, 1, 2, 3, 7});
    return Shape(std::move(dims));
  }
  Shape random_shape() {
    const auto kind = random_() % 8;
    if (kind == 0) return Shape::unknown_rank();
    if (kind == 1) return Shape({std::int64_t{1} << 44});
    if (kind == 2) return Shape({-1, 3});
    return small_shape();
  }
  static bool fits(Graph& graph, const NodeDef& node) {
    try {
      Outputs inputs;
      for (const std::string& input : node.inputs) inputs.push_back(graph.find_output(input));
      NodePlace place;
      place.name = node.name;
      place.device = node.device;
      return graph.add_node(node.op, inputs, node.attrs, place).name() == node.name;
    } catch (const std::exception&) {
      return false;
    }
  }

  std::mt19937_64 random_;
  const std::vector<std::string> ops_;
};

class HostileGraphs : public ServersTest {};

TEST_F(HostileGraphs, LeaveAServerThatAnswers) {
  const std::chrono::seconds time(env_int64("KOLO_FUZZ_SECONDS", 10, 1, 86400));
  const auto seed = static_cast<std::uint64_t>(env_int64("KOLO_FUZZ_SEED", 38, 0, INT64_MAX));
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  kill("ps0");
  const ServerProcess ps(cluster_);
  const std::string address = cluster_.task_address("ps", 0);
  detail::RemoteMaster master(detail::make_channel(address, {.name = "client"}));
  RandomGraphs graphs(seed);
  SessionConfig config;
  config.device_filters = {"/job:ps/task:0"};
  int sent = 0, opened = 0, ran = 0;
  std::int64_t step = 0;
  const auto in = [](std::chrono::milliseconds patience) { return Clock::now() + patience; };
  for (bool listens = false; !listens;) {
    try {
      check_server(address, {});
      listens = true;
    } catch (const Error&) {
      ASSERT_TRUE(ps.lives());
    }
  }
  for (const auto end = Clock::now() + time; Clock::now() < end; ++sent) {
    const GraphDef graph = graphs.next();
    if (graph.nodes.empty()) continue;
    const std::string file = std::filesystem::temp_directory_path() / ("hostile." + std::to_string(getpid()));
    try {
      const auto session = create_session(master, graph, config, in(std::chrono::seconds(20)));
      ++opened;
      for (int i = 0; i < 3; ++i) {
        detail::RunStepRequest request;
        request.session = session.handle();
        if (graphs.coin()) request.names.fetches = {graphs.pick(graph.nodes).name + ":0"};
        else request.names.targets = {graphs.pick(graph.nodes).name};
        request.request_id = static_cast<std::uint64_t>(++step);
        try {
          master.run_step(request, in(kPatience));
          ++ran;
        } catch (const Error&) {
        }
      }
      close_session(master, session.handle(), in(std::chrono::seconds(20)));
    } catch (const Error&) {
    }
    if (!ps.lives()) std::ofstream(file, std::ios::binary) << encode_graph_def(graph);
    ASSERT_TRUE(ps.lives()) << "graph " << sent << ", kept in " << file;
    if (sent % kAskedEvery == 0) {
      ASSERT_NO_THROW(check_server(address, {})) << "graph " << sent;
    }
  }
  EXPECT_NO_THROW(check_server(address, {}));
  std::printf("%d graphs sent, %d opened, %d runs ended well\n", sent, opened, ran);
  EXPECT_GT(opened, 0);
  EXPECT_GT(ran, 0);
}

}  // namespace
}  // namespace kolo
