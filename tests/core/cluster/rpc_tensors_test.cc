// RecvTensors: values of all types and sizes from one task to another.
#include <gmock/gmock.h>

#include <atomic>
#include <cstring>

#include "tests/core/cluster/rpc_fakes.h"

namespace kolo::detail {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

Tensor patterned(DType dtype, const Shape& shape) {
  Tensor value(dtype, shape);
  const auto modulus = dtype == DType::boolean ? 2u : 251u;
  for (std::size_t i = 0; i < value.bytes(); ++i) value.raw()[i] = static_cast<std::byte>(i % modulus);
  return value;
}

// What the sender has of the values goes through `value`.
std::shared_ptr<KeptTensors> sent(FakeTask& task, const std::vector<Tensor>& values,
                                  const std::shared_ptr<std::atomic<int>>& released) {
  task.worker.on_serve = [values, released](const TensorsRequest&, const std::shared_ptr<TensorSink>& sink) {
    for (std::size_t i = 0; i < values.size(); ++i)
      sink->put(i, values[i], !values[i], [released] { ++*released; });
    sink->end(nullptr);
    return std::shared_ptr<Call>();
  };
  auto kept = std::make_shared<KeptTensors>(values.size());
  TensorsRequest request = tensors_request({});
  for (std::size_t i = 0; i < values.size(); ++i) request.keys.push_back("key " + std::to_string(i));
  task.remote_worker()->receive(request, kept);
  kept->wait();
  return kept;
}

TEST(RpcTensors, BringEveryTypeAndSize) {
  FakeTask task;
  std::vector<Tensor> values;
  for (const DType dtype : {DType::f32, DType::f64, DType::i32, DType::i64, DType::boolean, DType::u8,
                            DType::i8, DType::f16, DType::bf16})
    for (const Shape& shape : {Shape(), Shape{0, 3}, Shape{7}, Shape{3, 21'845}, Shape{2, 500'009}})
      values.push_back(patterned(dtype, shape));
  const auto released = std::make_shared<std::atomic<int>>(0);
  const auto kept = sent(task, values, released);
  for (std::size_t i = 0; i < values.size(); ++i) {
    ASSERT_EQ(kept->values[i].dtype(), values[i].dtype());
    ASSERT_EQ(kept->values[i].shape(), values[i].shape());
    ASSERT_EQ(std::memcmp(kept->values[i].raw(), values[i].raw(), values[i].bytes()), 0) << i;
  }
  task.server.stop(std::chrono::seconds(10));  // waits for the owners
  EXPECT_EQ(*released, static_cast<int>(values.size()));
}

TEST(RpcTensors, BringStringsAndDeadValues) {
  FakeTask task;
  const auto released = std::make_shared<std::atomic<int>>(0);
  const auto kept =
      sent(task,
           {Tensor::of<std::string>({3}, {"", std::string("a\0b", 3), std::string(3 << 20, 'z')}), Tensor(),
            Tensor(DType::string, {0})},
           released);
  EXPECT_EQ(kept->values[0].span<std::string>()[1], std::string("a\0b", 3));
  EXPECT_EQ(kept->values[0].span<std::string>()[2].size(), std::size_t{3} << 20);
  EXPECT_TRUE(kept->dead[1]);
  EXPECT_FALSE(kept->dead[0]);
  EXPECT_EQ(kept->values[2].shape(), Shape{0});
}

TEST(RpcTensors, ComeWhenTheyExist) {
  FakeTask task;
  std::promise<std::shared_ptr<TensorSink>> asked;
  task.worker.on_serve = [&](const TensorsRequest&, std::shared_ptr<TensorSink> sink) {
    asked.set_value(std::move(sink));
    return std::shared_ptr<Call>();
  };
  const auto kept = std::make_shared<KeptTensors>(2);
  task.remote_worker()->receive(tensors_request({"a", "b"}), kept);
  const auto sink = asked.get_future().get();
  sink->put(1, Tensor::scalar(2.f), false, [] {});
  sink->put(0, Tensor::scalar(1.f), false, [] {});
  sink->end(nullptr);
  kept->wait();
  EXPECT_EQ(kept->values[0].value<float>(), 1.f);
  EXPECT_EQ(kept->values[1].value<float>(), 2.f);
}

TEST(RpcTensors, EndWithTheSendersError) {
  FakeTask task;
  task.worker.on_serve = [](const TensorsRequest&, const std::shared_ptr<TensorSink>& sink) {
    sink->end(std::make_exception_ptr(ConsequenceError(Code::aborted, "Step 7 is over")));
    return std::shared_ptr<Call>();
  };
  const auto kept = std::make_shared<KeptTensors>(1);
  task.remote_worker()->receive(tensors_request({"a"}), kept);
  EXPECT_THAT([&] { kept->wait(); }, ThrowsMessage<ConsequenceError>(HasSubstr("Step 7 is over")));
}

TEST(RpcTensors, TellTheSenderThatTheReceiverHasGone) {
  FakeTask task;
  std::promise<void> asked, cancelled;
  task.worker.on_serve = [&](const TensorsRequest&,
                             std::shared_ptr<TensorSink> sink) -> std::shared_ptr<Call> {
    asked.set_value();
    return std::make_shared<FakeCall>([&cancelled, sink = std::move(sink)] {
      sink->end(std::make_exception_ptr(CancelledError("ended")));
      cancelled.set_value();
    });
  };
  const auto kept = std::make_shared<KeptTensors>(1);
  const auto call = task.remote_worker()->receive(tensors_request({"a"}), kept);
  asked.get_future().wait();
  call->cancel();
  EXPECT_THROW(kept->wait(), CancelledError);
  EXPECT_EQ(cancelled.get_future().wait_for(std::chrono::seconds(20)), std::future_status::ready);
}

TEST(RpcTensors, ReleaseWhatNobodyTakes) {
  FakeTask task;
  std::promise<void> released, asked;
  task.worker.on_serve = [&](const TensorsRequest&, const std::shared_ptr<TensorSink>& sink) {
    sink->put(0, Tensor::zeros(DType::u8, {64 << 20}), false, [&] { released.set_value(); });
    asked.set_value();
    return std::make_shared<FakeCall>(
        [sink] { sink->end(std::make_exception_ptr(CancelledError("ended"))); });
  };
  class Refusing final : public TensorReceiver {
   public:
    Tensor memory_for(std::size_t, DType, const Shape&) override {
      throw ResourceExhaustedError("larger than planned");
    }
    void arrived(std::size_t, Tensor, bool) override {}
    void ended(std::exception_ptr error) override { end.set_exception(error); }
    std::promise<void> end;
  };
  const auto refusing = std::make_shared<Refusing>();
  task.remote_worker()->receive(tensors_request({"a"}), refusing);
  EXPECT_THAT([&] { refusing->end.get_future().get(); },
              ThrowsMessage<ResourceExhaustedError>(HasSubstr("larger than planned")));
  EXPECT_EQ(released.get_future().wait_for(std::chrono::seconds(20)), std::future_status::ready);
}

}  // namespace
}  // namespace kolo::detail
