#include <kolo/core/ops/scatter.h>

#include <gmock/gmock.h>

#include <kolo/core/base/error.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/runtime/session.h>

#include "tests/core/run_op.h"

namespace kolo {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

struct Scatter : testing::Test {
  using Builder = Output (*)(const Scope&, const Variable&, Output, Output);

  // The variable after `op`.
  std::vector<float> after(Builder op, const Tensor& indices, const Tensor& updates) {
    const Output result = op(s, v, constant(s, indices), constant(s, updates));
    Session session(graph);
    session.run(v.initializer());
    session.run(result);
    const Tensor value = session.run(v.read());
    EXPECT_EQ(result.shape(), v.shape());
    record_op_check(result.node->op(), OpCheck::value);
    record_op_check(result.node->op(), OpCheck::shape);
    const auto span = value.span<float>();
    return {span.begin(), span.end()};
  }

  Graph graph;
  Scope s{graph};
  Variable v{s.named("v"), constant(s, Tensor::of<float>({3, 2}, {1, 2, 3, 4, 5, 6}))};
};

const Tensor kTwice = Tensor::of<std::int32_t>({3}, {2, 0, 2});
const Tensor kRows = Tensor::of<float>({3, 2}, {10, 20, 30, 40, 50, 60});

TEST_F(Scatter, AddsBothUpdatesOfARowThatIsListedTwice) {
  EXPECT_THAT(after(scatter_add, kTwice, kRows), ElementsAre(31, 42, 3, 4, 65, 86));
}

TEST_F(Scatter, SubtractsBothUpdatesOfARowThatIsListedTwice) {
  EXPECT_THAT(after(scatter_sub, kTwice, kRows), ElementsAre(-29, -38, 3, 4, -55, -74));
}

TEST_F(Scatter, KeepsTheLastUpdateOfARowThatIsListedTwice) {
  EXPECT_THAT(after(scatter_update, kTwice, kRows), ElementsAre(30, 40, 3, 4, 50, 60));
}

TEST_F(Scatter, TakesIndicesOfAnyShape) {
  const Tensor indices = Tensor::of<std::int64_t>({1, 2}, {1, 0});
  EXPECT_THAT(after(scatter_update, indices, Tensor::of<float>({1, 2, 2}, {7, 8, 9, 10})),
              ElementsAre(9, 10, 7, 8, 5, 6));
}

TEST_F(Scatter, ChangesNothingWithoutIndices) {
  EXPECT_THAT(after(scatter_add, Tensor(DType::i32, {0}), Tensor(DType::f32, {0, 2})),
              ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST_F(Scatter, ChangesNothingWhereAnIndexIsOutOfRange) {
  const Output result = scatter_add(s, v, constant(s, Tensor::of<std::int32_t>({2}, {0, 3})),
                                    constant(s, Tensor::of<float>({2, 2}, {1, 1, 1, 1})));
  Session session(graph);
  session.run(v.initializer());
  EXPECT_THAT([&] { session.run(result); }, ThrowsMessage<InvalidArgumentError>(
                                                HasSubstr("Index 3 at offset 1 in indices is out of range")));
  EXPECT_THAT(session.run(v.read()).span<float>(), ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST_F(Scatter, NamesShapesThatDoNotFit) {
  EXPECT_THAT(
      [&] {
        scatter_add(s, v, constant(s, kTwice), constant(s, Tensor::of<float>({2, 2}, {1, 1, 1, 1})));
      },
      ThrowsMessage<InvalidArgumentError>(AllOf(HasSubstr("[2,2]"), HasSubstr("[3,2]"))));
}

TEST(ScatterAdd, IsTheSameOnAnyNumberOfThreads) {
  const auto run = [](int threads) {
    const IntraOpThreads scope(threads);
    Graph graph;
    Scope s(graph);
    const Variable v(s.named("v"), zeros(s, DType::f32, {50, 40}));
    Tensor indices(DType::i32, {3000}), updates(DType::f32, {3000, 40});
    for (int i = 0; i < 3000; ++i) indices.data<std::int32_t>()[i] = i * i % 50;
    for (int i = 0; i < 120000; ++i) updates.data<float>()[i] = 1.0f / static_cast<float>(1 + i % 97);
    const Output result = scatter_add(s, v, constant(s, indices), constant(s, updates));
    SessionConfig config;
    config.intra_op_parallelism_threads = threads;
    Session session(graph, config);
    session.run(v.initializer());
    return session.run(result).clone();
  };
  const Tensor one = run(1), three = run(3);
  for (std::int64_t i = 0; i < one.elements(); ++i)
    ASSERT_EQ(three.data<float>()[i], one.data<float>()[i]) << "element " << i;
}

}  // namespace
}  // namespace kolo
