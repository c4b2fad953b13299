#include <kolo/core/runtime/session.h>

#include <gmock/gmock.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <thread>

#include <kolo/core/base/error.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/variables.h>
#include <tests/core/test_ops.h>

namespace {

// Calls of operator new, of every thread.
std::atomic<std::int64_t> allocations{0};

void* counted(std::size_t bytes, std::size_t alignment) {
  ++allocations;
  void* const block = std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  if (block == nullptr) throw std::bad_alloc();
  return block;
}

}  // namespace

// GCC, where it inlines one of them and not the other, sees memory of new given to free.
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"
void* operator new(std::size_t bytes) { return counted(bytes, alignof(std::max_align_t)); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return counted(bytes, static_cast<std::size_t>(alignment));
}
// std::stable_sort's; a sanitizer's own would not go with this delete.
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept { return std::malloc(bytes); }
void operator delete(void* block) noexcept { std::free(block); }
void operator delete(void* block, std::size_t) noexcept { std::free(block); }
void operator delete(void* block, std::align_val_t) noexcept { std::free(block); }
void operator delete(void* block, std::size_t, std::align_val_t) noexcept { std::free(block); }

namespace kolo {
namespace {

using testing::add;
using testing::call;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

class CallableStep : public ::testing::Test {
 protected:
  Graph graph;
  const Scope s{graph};
  const Output x = placeholder(s.named("x"), DType::f32, {-1});
  const Output y = add(s, x, x);
  const Output z = add(s, y, x);
  Session session{graph};
  const Tensor two = Tensor::of<float>({2}, {1, 2});
  const Tensor three = Tensor::of<float>({3}, {1, 2, 3});
};

TEST_F(CallableStep, GivesItsFetchesForItsFeedsInOrder) {
  const Callable callable = session.make_callable({.feeds = {x}, .fetches = {z, "TestAdd:0"}});
  const auto results = callable({two});
  EXPECT_THAT(results[0].span<float>(), ElementsAre(3, 6));
  EXPECT_THAT(results[1].span<float>(), ElementsAre(2, 4));
}

TEST_F(CallableStep, WritesIntoTensorsThatFitAndReplacesOthers) {
  const Callable callable = session.make_callable({.feeds = {x}, .fetches = {y}});
  Tensor result = Tensor::zeros(DType::f32, {2});
  const std::byte* const memory = result.raw();
  callable.run({&two, 1}, {&result, 1});
  EXPECT_EQ(result.raw(), memory);
  EXPECT_THAT(result.span<float>(), ElementsAre(2, 4));
  callable.run({&three, 1}, {&result, 1});
  EXPECT_THAT(result.span<float>(), ElementsAre(2, 4, 6));
}

TEST_F(CallableStep, TakesOtherShapesFromCallToCall) {
  const Callable callable = session.make_callable({.feeds = {x}, .fetches = {y}});
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(callable({two})[0].shape(), Shape({2}));
    EXPECT_EQ(callable({three})[0].shape(), Shape({3}));
  }
}

TEST_F(CallableStep, RunsTargetsAndSharesTheSessionsVariables) {
  const Variable v(s.named("v"), constant(s, 1.0f));
  session.run(v.initializer());
  const Callable more = session.make_callable({.targets = {Operation(assign_add(s, v, constant(s, 2.0f)))}});
  EXPECT_TRUE(more().empty());
  more();
  EXPECT_EQ(session.run(v).value<float>(), 5);
}

TEST_F(CallableStep, LeavesResultsAloneWhenItsStepFails) {
  const Output failing = call(s, 1, {x}, {2});
  const Callable callable = session.make_callable({.feeds = {x}, .fetches = {failing}});
  Tensor result = Tensor::of<float>({2}, {7, 8});
  testing::on_call = [](std::int64_t) { throw DataLossError("a bad file"); };
  EXPECT_THROW(callable.run({&two, 1}, {&result, 1}), DataLossError);
  testing::on_call = [](std::int64_t) {};
  EXPECT_THAT(result.span<float>(), ElementsAre(7, 8));
}

TEST_F(CallableStep, MayBeCalledFromManyThreads) {
  const Callable callable = session.make_callable({.feeds = {x}, .fetches = {z}});
  std::atomic<int> right{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      const Tensor mine = Tensor::of<float>({1}, {static_cast<float>(t)});
      for (int i = 0; i < 100; ++i) right += callable({mine})[0].value<float>() == static_cast<float>(3 * t);
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(right, 400);
}

TEST_F(CallableStep, RefusesSignaturesThatDoNotFitTheGraph) {
  const auto bind = [&](const CallableSignature& signature) {
    return [&, signature] { session.make_callable(signature); };
  };
  EXPECT_THAT(bind({.feeds = {x}, .fetches = {x}}),
              ThrowsMessage<InvalidArgumentError>(HasSubstr("x:0 is both fed and fetched.")));
  EXPECT_THAT(bind({.feeds = {x, "x:0"}, .fetches = {y}}),
              ThrowsMessage<InvalidArgumentError>(HasSubstr("Endpoint \"x:0\" fed more than once.")));
  EXPECT_THAT(bind({.feeds = {x}}), ThrowsMessage<InvalidArgumentError>(
                                        HasSubstr("Must specify at least one target to fetch or execute.")));
  EXPECT_THAT(bind({.feeds = {"w"}, .fetches = {y}}),
              ThrowsMessage<NotFoundError>(HasSubstr("FeedInputs: unable to find feed output w")));
}

TEST_F(CallableStep, RefusesValuesThatDoNotFitTheSignature) {
  const Callable callable = session.make_callable({.feeds = {x}, .fetches = {y}});
  EXPECT_THROW(callable({}), InvalidArgumentError);
  EXPECT_THROW(callable({Tensor::zeros(DType::f32, {2, 2})}), InvalidArgumentError);
  EXPECT_THROW(callable({Tensor::zeros(DType::f64, {2})}), InvalidArgumentError);
  EXPECT_THROW(callable.run({&two, 1}, {}), InvalidArgumentError);
}

// With helpers and without.
class CallableMemory : public CallableStep, public ::testing::WithParamInterface<int> {};

TEST_P(CallableMemory, AllocatesNothingInAStepAfterTheFirst) {
  if (std::getenv("KOLO_VIRTUAL_GPUS") != nullptr)
    GTEST_SKIP() << "a virtual GPU's kernels are told their memory's other addresses anew in each step";
  Output sum = x;
  for (int i = 0; i < 50; ++i) sum = add(s, sum, add(s, x, sum));
  Session own(graph, {.inter_op_parallelism_threads = GetParam(), .use_per_session_threads = true});
  const Callable callable = own.make_callable({.feeds = {x}, .fetches = {sum, y}});
  Tensor results[2];
  for (int i = 0; i < 3; ++i) callable.run({&two, 1}, results);
  const std::int64_t before = allocations;
  for (int i = 0; i < 200; ++i) callable.run({&two, 1}, results);
  EXPECT_EQ(allocations, before);
}
INSTANTIATE_TEST_SUITE_P(Threads, CallableMemory, ::testing::Values(1, 2));

}  // namespace
}  // namespace kolo
