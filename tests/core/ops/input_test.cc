#include <kolo/core/ops/input.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include <kolo/core/base/error.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/runtime/session.h>

#include "tests/core/op_checks.h"

namespace kolo {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

// Element k: a row of k + 1 copies of k (or of `width` copies, where that is given), and k as an i64 scalar.
class Counting : public ElementSource {
 public:
  explicit Counting(std::int64_t count, std::int64_t width = -1) : count_(count), width_(width) {}
  std::vector<Component> components() const override { return {{DType::f32, {width_}}, {DType::i64, {}}}; }
  bool next(std::vector<Tensor>& tensors) override {
    if (next_ == count_) return false;
    tensors = {Tensor(DType::f32, {width_ < 0 ? next_ + 1 : width_}), Tensor::scalar<std::int64_t>(next_)};
    for (float& value : tensors[0].span<float>()) value = static_cast<float>(next_);
    ++next_;
    return true;
  }
  void rewind() { next_ = 0; }

 private:
  std::int64_t count_, width_, next_ = 0;
};

TEST(Iterator, GivesOneElementToEachRun) {
  Graph graph;
  Scope s(graph);
  const Outputs next = make_iterator(s, std::make_shared<Counting>(3));
  Session session(graph);
  for (std::int64_t k = 0; k < 3; ++k) {
    const auto element = session.run({next[0], next[1]});
    EXPECT_EQ(element[0].shape(), Shape({k + 1}));
    EXPECT_EQ(element[0].data<float>()[k], static_cast<float>(k));
    EXPECT_EQ(element[1].value<std::int64_t>(), k);
  }
  record_op_check("IteratorNext", OpCheck::value);
}

TEST(Iterator, KnowsTheShapesOfItsComponents) {
  Graph graph;
  Scope s(graph);
  const Outputs next = make_iterator(s, std::make_shared<Counting>(3, 2));
  EXPECT_EQ(next[0].shape(), Shape({2}));
  EXPECT_EQ(next[1].shape(), Shape());
  EXPECT_EQ(next[1].dtype(), DType::i64);
  EXPECT_EQ(make_iterator(s, std::make_shared<Counting>(3))[0].shape(), Shape({-1}));
  record_op_check("IteratorNext", OpCheck::shape);
}

TEST(Iterator, FeedsOpsOfTheSameRun) {
  Graph graph;
  Scope s(graph);
  const Outputs next = make_iterator(s, std::make_shared<Counting>(2, 2));
  const Output y = add(s, next[0], next[0]);
  Session session(graph);
  session.run(y);
  EXPECT_THAT(session.run(y).span<float>(), ElementsAre(2, 2));
}

TEST(Iterator, EndsInOutOfRangeAndGoesOnIfRewound) {
  Graph graph;
  Scope s(graph);
  const auto source = std::make_shared<Counting>(1);
  const Output label = make_iterator(s, source)[1];
  Session session(graph);
  session.run(label);
  for (int i = 0; i < 2; ++i)
    EXPECT_THAT([&] { session.run(label); }, ThrowsMessage<OutOfRangeError>(HasSubstr("End of sequence")));
  source->rewind();
  EXPECT_EQ(session.run(label).value<std::int64_t>(), 0);
}

TEST(Iterator, GivesNoElementTwiceToConcurrentRuns) {
  Graph graph;
  Scope s(graph);
  const Output label = make_iterator(s, std::make_shared<Counting>(40))[1];
  Session session(graph);
  std::vector<std::int64_t> seen[2];
  const auto take = [&](int thread) {
    for (int i = 0; i < 20; ++i) seen[thread].push_back(session.run(label).value<std::int64_t>());
  };
  std::thread other(take, 1);
  take(0);
  other.join();
  std::vector<std::int64_t> all = seen[0];
  all.insert(all.end(), seen[1].begin(), seen[1].end());
  std::sort(all.begin(), all.end());
  for (std::int64_t k = 0; k < 40; ++k) EXPECT_EQ(all[static_cast<std::size_t>(k)], k);
}

TEST(Iterator, LivesAsLongAsItsGraph) {
  const auto source = std::make_shared<Counting>(1);
  {
    Graph graph;
    Scope s(graph);
    make_iterator(s, source);
    EXPECT_GT(source.use_count(), 1);
  }
  EXPECT_EQ(source.use_count(), 1);
}

class Announcing : public Counting {
 public:
  Announcing(std::vector<Component> components) : Counting(1), components_(std::move(components)) {}
  std::vector<Component> components() const override { return components_; }

 private:
  std::vector<Component> components_;
};

TEST(IteratorErrors, NameTheComponentThatDoesNotFit) {
  Graph graph;
  Scope s(graph);
  const Outputs next = make_iterator(s, std::make_shared<Announcing>(std::vector<ElementSource::Component>{
                                            {DType::f32, {1}}, {DType::i32, {}}}));
  Session session(graph);
  EXPECT_THAT([&] { session.run(next[0]); }, ThrowsMessage<InvalidArgumentError>(
                                                 HasSubstr("component 1 of an iterator's source is i64 []")));
}

TEST(IteratorErrors, RefuseASourceThatIsNotInThisProcess) {
  Graph graph;
  const Scope s(graph);
  EXPECT_THAT(
      [&] {
        s.add("IteratorNext", {constant(s, 1.0f)}, {{"source", Tensor::scalar<std::int64_t>(0x1234)}});
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("is not in this process")));
}

TEST(IteratorErrors, RefuseSourcesWithoutComponents) {
  Graph graph;
  Scope s(graph);
  EXPECT_THAT([&] { make_iterator(s, nullptr); }, ThrowsMessage<InvalidArgumentError>(HasSubstr("empty")));
  EXPECT_THAT(
      [&] { make_iterator(s, std::make_shared<Announcing>(std::vector<ElementSource::Component>{})); },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("no components")));
}

}  // namespace
}  // namespace kolo
