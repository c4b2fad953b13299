// Rows that are added up on a GPU that is not there: few are looked for, many are sorted.
#include <gmock/gmock.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include <kolo/core/base/error.h>
#include <kolo/core/graph/indexed_slices.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/indexing.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/ops/variables.h>
#include <kolo/core/runtime/session.h>
#include <kolo/optimizer/registry.h>

namespace kolo {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

struct Named {
  std::int64_t count, rows, width;
  std::int64_t index(std::int64_t i) const { return i * i * 31 % 1009 % rows; }
  Tensor indices() const {
    std::vector<std::int64_t> all;
    for (std::int64_t i = 0; i < count; ++i) all.push_back(index(i));
    return Tensor::of<std::int64_t>({count}, std::span<const std::int64_t>(all));
  }
  // Of different sizes, so that the order in which they are added shows in the bits.
  Tensor values() const {
    std::vector<float> all;
    for (std::int64_t i = 0; i < count * width; ++i)
      all.push_back(std::ldexp(std::sin(static_cast<float>(i)), static_cast<int>(i % 17)));
    return Tensor::of<float>({count, width}, std::span<const float>(all));
  }
};
constexpr Named kNamed[] = {{0, 5, 3}, {1, 1, 1}, {33, 7, 300}, {600, 1, 33}, {700, 1000, 5}, {1500, 7, 257}};

// Row by row, in their order.
std::vector<float> joined(const Named& named, std::vector<float> to,
                          const std::function<float(float, float)>& join) {
  const Tensor values = named.values();
  for (std::int64_t i = 0; i < named.count; ++i)
    for (std::int64_t j = 0; j < named.width; ++j) {
      float& at = to[static_cast<std::size_t>(named.index(i) * named.width + j)];
      at = join(at, values.data<float>()[i * named.width + j]);
    }
  return to;
}

std::vector<float> numbers(const Tensor& tensor) {
  return {tensor.data<float>(), tensor.data<float>() + tensor.elements()};
}

std::vector<float> zeros_for(const Named& named) {
  return std::vector<float>(static_cast<std::size_t>(named.rows * named.width), 0.0f);
}

TEST(RowsOnAGpu, AreAddedInTheOrderInWhichTheyStand) {
  for (const Named& named : kNamed) {
    SCOPED_TRACE(::testing::Message() << named.count << " of " << named.rows << " of " << named.width);
    Graph graph;
    const Scope s = Scope(graph).device("/gpu:0");
    const Output values = placeholder(s, DType::f32, {named.count, named.width}),
                 indices = placeholder(s, DType::i64, {named.count});
    Session session(graph);
    const Tensor sums = session.run(unsorted_segment_sum(s, values, indices, named.rows),
                                    {{values, named.values()}, {indices, named.indices()}});
    EXPECT_EQ(numbers(sums), joined(named, zeros_for(named), [](float a, float b) { return a + b; }));
  }
}

// The rows of a tied table's gradient: none is a tensor as large as the table.
TEST(RowsOnAGpu, AreAddedToATensorThatIsThere) {
  for (const Named& named : kNamed) {
    SCOPED_TRACE(::testing::Message() << named.count << " of " << named.rows << " of " << named.width);
    Graph graph;
    const Scope s = Scope(graph).device("/gpu:0");
    const Output values = placeholder(s, DType::f32, {named.count, named.width}),
                 indices = placeholder(s, DType::i64, {named.count}),
                 table = placeholder(s, DType::f32, {named.rows, named.width});
    const Output slices =
        to_dense(s, {.values = values, .indices = indices, .dense_shape = {named.rows, named.width}});
    const Output sum = add_n(s, {neg(s, table), slices});
    std::vector<float> start(static_cast<std::size_t>(named.rows * named.width));
    for (std::size_t i = 0; i < start.size(); ++i) start[i] = std::cos(static_cast<float>(i));
    std::vector<float> expected = joined(named, zeros_for(named), std::plus<>());
    for (std::size_t i = 0; i < start.size(); ++i) expected[i] = -start[i] + expected[i];
    const Feeds feeds = {
        {values, named.values()},
        {indices, named.indices()},
        {table, Tensor::of<float>({named.rows, named.width}, std::span<const float>(start))}};
    const auto planned_bytes = [&](std::vector<std::string> disabled) {
      Session session(graph, {.graph_options = {.disabled_passes = std::move(disabled)}});
      RunMetadata metadata;
      for (int step = 0; step < 3; ++step)  // node by node, kept as a graph, replayed
        EXPECT_EQ(numbers(session.run({sum}, feeds, RunOptions(), &metadata)[0]), expected);
      std::size_t bytes = 0;
      for (const DeviceMemory& memory : metadata.memory)
        if (memory.device.find("GPU") != std::string::npos) bytes += memory.planned_bytes;
      return bytes;
    };
    const std::size_t table_bytes = start.size() * sizeof(float), with = planned_bytes({}),
                      without = planned_bytes({"add_rows"});
    EXPECT_LE(with + table_bytes, without);
  }
}

TEST(RowsOnAGpu, ChangeAVariableInTheOrderInWhichTheyStand) {
  using Scatter = Output (*)(const Scope&, const Variable&, Output, Output);
  const std::pair<Scatter, std::function<float(float, float)>> kinds[] = {
      {scatter_add, [](float a, float b) { return a + b; }},
      {scatter_sub, [](float a, float b) { return a - b; }},
      {scatter_update, [](float, float b) { return b; }}};
  for (const Named& named : kNamed)
    for (const auto& [scatter, join] : kinds) {
      SCOPED_TRACE(::testing::Message() << named.count << " of " << named.rows << " of " << named.width);
      Graph graph;
      const Scope s = Scope(graph).device("/gpu:0");
      const std::vector<float> start(static_cast<std::size_t>(named.rows * named.width), 0.75f);
      const Variable v(s.named("v"), constant(s, Tensor::of<float>({named.rows, named.width},
                                                                   std::span<const float>(start))));
      const Output values = placeholder(s, DType::f32, {named.count, named.width}),
                   indices = placeholder(s, DType::i64, {named.count});
      const Output changed = scatter(s, v, indices, values);
      const Operation first = global_variables_initializer(s);
      Session session(graph);
      session.run(first);
      const Tensor made = session.run(changed, {{values, named.values()}, {indices, named.indices()}});
      EXPECT_EQ(numbers(made), joined(named, start, join));
    }
}

// Today's vocabularies times a batch of long texts are more than 2³⁰ pairs of a row and an index.
TEST(RowsOnAGpu, HaveNoLimit) {
  constexpr Named kMany = {1100, 1'000'003, 1};
  Graph graph;
  const Scope s = Scope(graph).device("/gpu:0");
  const Output table = placeholder(s, DType::f32, {kMany.rows, 1}),
               rows = gather(s, table, constant(s, kMany.indices()));
  const Output gradient = s.add("GatherGrad", {rows, constant(s, kMany.indices()), table}, {{"axis", 0}});
  Session session(graph);
  const std::vector<float> ones(static_cast<std::size_t>(kMany.rows), 1.0f);
  const Tensor sums =
      session.run(gradient, {{table, Tensor::of<float>({kMany.rows, 1}, std::span<const float>(ones))}});
  std::vector<float> expected(ones.size(), 0.0f);
  for (std::int64_t i = 0; i < kMany.count; ++i) ++expected[static_cast<std::size_t>(kMany.index(i))];
  EXPECT_EQ(numbers(sums), expected);
}

TEST(RowsOnAGpu, OutOfRangeAreToldWhereTheyAreSorted) {
  Graph graph;
  const Scope s = Scope(graph).device("/gpu:0");
  constexpr std::int64_t kCount = 900;
  const Output values = placeholder(s, DType::f32, {kCount, 2}),
               indices = placeholder(s, DType::i32, {kCount});
  const Output sums = unsorted_segment_sum(s, values, indices, 4);
  Session session(graph);
  std::vector<std::int32_t> numbers(kCount, 3);
  numbers[700] = -2;
  numbers[800] = 4;
  const std::vector<float> ones(2 * kCount, 1.0f);
  const auto run = [&] {
    return session.run(
        sums, {{values, Tensor::of<float>({kCount, 2}, std::span<const float>(ones))},
               {indices, Tensor::of<std::int32_t>({kCount}, std::span<const std::int32_t>(numbers))}});
  };
  EXPECT_THAT(run, ThrowsMessage<InvalidArgumentError>(
                       HasSubstr("Index -2 at offset 700 in indices is out of range: there are 4 rows")));
  numbers[700] = numbers[800] = 0;
  EXPECT_EQ(run().data<float>()[6], kCount - 2);
}

// Variable and slots after updates of some rows.
std::vector<std::vector<float>> updated(const std::string& rule, const Named& named, const char* device) {
  Graph graph;
  const Scope s = Scope(graph).device(device);
  const std::vector<float> start(static_cast<std::size_t>(named.rows * named.width), 0.75f);
  const Variable v(s.named("v"),
                   constant(s, Tensor::of<float>({named.rows, named.width}, std::span<const float>(start))));
  const Output values = placeholder(s, DType::f32, {-1, named.width}),
               indices = placeholder(s, DType::i64, {-1});
  const GradientPair pair = {to_dense(s, {.values = values, .indices = indices, .dense_shape = v.shape()}),
                             v};
  const auto optimizer = make_optimizer(rule, {.learning_rate = 0.01});
  Scope building = s;
  const Operation update = optimizer->apply_gradients(building, {&pair, 1});
  const Operation first = global_variables_initializer(s);
  Session session(graph);
  session.run(first);
  for (int step = 0; step < 2; ++step)
    session.run(update, {{values, named.values()}, {indices, named.indices()}});
  std::vector<std::vector<float>> all;
  for (const Variable& variable : global_variables(graph))
    if (variable.dtype() == DType::f32) all.push_back(numbers(session.run(variable.read())));
  return all;
}

TEST(RowsOnAGpu, AreUpdatedWithTheBitsOfTheCpu) {
  for (const std::string rule : {"sgd", "momentum", "adam"})
    for (const Named& named : {Named{40, 9, 3}, Named{700, 9, 300}}) {
      SCOPED_TRACE(::testing::Message() << rule << ' ' << named.count);
      EXPECT_EQ(updated(rule, named, "/gpu:0"), updated(rule, named, "/cpu:0"));
    }
}

}  // namespace
}  // namespace kolo
