// RunGraph: the values that pass between a part and the task that has it run.
#include <gmock/gmock.h>

#include <atomic>
#include <cstring>
#include <future>
#include <thread>

#include <kolo/core/cluster/rpc/grpc_peers.h>

#include "tests/core/cluster/rpc_fakes.h"

namespace kolo::detail {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr const char* kPs = "/job:ps/replica:0/task:0";
constexpr const char* kWorker = "/job:worker/replica:0/task:0";
constexpr std::chrono::seconds kLong(30);

Tensor large() {
  Tensor value(DType::u8, Shape{3, (1 << 20) + 1});
  for (std::size_t i = 0; i < value.bytes(); ++i) value.raw()[i] = static_cast<std::byte>(i % 251);
  return value;
}

bool same(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() && std::memcmp(a.raw(), b.raw(), a.bytes()) == 0;
}

// A master's task, and one that runs parts for it and cannot reach it: what comes there comes on its calls.
class RpcPart : public ::testing::Test {
 protected:
  RpcPart()
      : task_(FakeTask::at("localhost:0"), false),
        cluster_({{"ps", {task_.server.address()}}, {"worker", {"localhost:1"}}}),
        here_(cluster_, task_.caller()),
        there_(cluster_, {.name = kPs, .cluster_fingerprint = FakeTask::kFingerprint}) {
    here_.set_own(own_, own_);
    there_.set_own({}, {});
    task_.streams = there_.streams();
    task_.start();
  }
  ~RpcPart() override { task_.server.stop(std::chrono::seconds(10)); }

  std::shared_ptr<Call> run(std::vector<std::string> taken, std::vector<std::string> given) {
    auto request = part_request();
    request.taken = std::move(taken);
    request.given = std::move(given);
    return here_.worker(kPs)->run_part(request, soon(), [this](std::exception_ptr error, PartResult) {
      if (error != nullptr) done_.set_exception(std::move(error));
      else done_.set_value();
    });
  }
  void wait_until_done() {
    auto done = done_.get_future();
    ASSERT_EQ(done.wait_for(kLong), std::future_status::ready);
    done.get();
  }
  static std::shared_ptr<KeptTensors> receive(GrpcPeers& peers, const char* sender,
                                              std::vector<std::string> keys) {
    auto kept = std::make_shared<KeptTensors>(keys.size());
    auto request = tensors_request(std::move(keys));
    request.step = part_request().step;
    peers.worker(sender)->receive(request, kept);
    return kept;
  }
  // What `worker` has of a step, all at once.
  static void has(FakeWorker& worker, std::map<std::string, Tensor> values,
                  const std::shared_ptr<std::atomic<int>>& released) {
    worker.on_serve = [values = std::move(values), released](const TensorsRequest& request,
                                                             const std::shared_ptr<TensorSink>& sink) {
      for (std::size_t i = 0; i < request.keys.size(); ++i) {
        const Tensor& value = values.at(request.keys[i]);
        sink->put(i, value, !value, [released] { ++*released; });
      }
      sink->end(nullptr);
      return std::shared_ptr<Call>(std::make_shared<FakeCall>([] {}));
    };
  }
  // The part: takes what is given, then is done.
  void part_takes(std::vector<std::string> keys) {
    task_.worker.on_run = [this, keys = std::move(keys)](const RunPartRequest&, FakeWorker::Done done) {
      received_ = receive(there_, kWorker, keys);
      part_ = std::jthread([this, done = std::move(done)] {
        try {
          received_->wait();
          done(nullptr, {});
        } catch (...) {
          done(std::current_exception(), {});
        }
      });
      return std::shared_ptr<Call>();
    };
  }

  FakeTask task_;
  const ClusterSpec cluster_;
  GrpcPeers here_, there_;
  const std::shared_ptr<FakeWorker> own_ = std::make_shared<FakeWorker>();
  const std::shared_ptr<std::atomic<int>> released_ = std::make_shared<std::atomic<int>>(0);
  std::shared_ptr<KeptTensors> received_;  // by the part
  std::promise<void> done_;
  std::jthread part_;
};

TEST_F(RpcPart, ValuesGoBothWaysOnTheCallThatRunsIt) {
  const Tensor small = Tensor::of<float>({2}, {1, 2}), text = Tensor::of<std::string>({1}, {"hi"});
  has(task_.worker, {{"a", large()}, {"b", small}, {"c", Tensor()}}, released_);
  has(*own_, {{"x", small}, {"y", large()}, {"z", text}, {"dead", Tensor()}}, released_);
  part_takes({"z", "y", "dead", "x"});
  run({"a", "b", "c"}, {"x", "y", "z", "dead"});
  const auto kept = receive(here_, kPs, {"c", "b", "a"});
  wait_until_done();
  kept->wait();
  EXPECT_TRUE(kept->dead[0]);
  EXPECT_TRUE(same(kept->values[1], small));
  EXPECT_TRUE(same(kept->values[2], large()));
  EXPECT_EQ(received_->values[0].span<std::string>()[0], "hi");
  EXPECT_TRUE(same(received_->values[1], large()));
  EXPECT_TRUE(received_->dead[2]);
  EXPECT_TRUE(same(received_->values[3], small));
}

TEST_F(RpcPart, EveryOwnerIsToldThatItsValueWasSent) {
  has(task_.worker, {{"a", large()}, {"b", Tensor::scalar<float>(1)}}, released_);
  has(*own_, {{"x", large()}, {"y", Tensor::scalar<float>(1)}}, released_);
  part_takes({"x", "y"});
  run({"a", "b"}, {"x", "y"});
  receive(here_, kPs, {"a", "b"})->wait();
  wait_until_done();
  task_.server.stop(std::chrono::seconds(10));
  const auto until = std::chrono::steady_clock::now() + kLong;
  while (*released_ < 4 && std::chrono::steady_clock::now() < until) std::this_thread::yield();
  EXPECT_EQ(*released_, 4);
}

TEST_F(RpcPart, ErrorIsToldOnceAndItsConsequenceToWhoWaitsForValues) {
  task_.worker.on_serve = [](const TensorsRequest&, const std::shared_ptr<TensorSink>&) {
    return std::shared_ptr<Call>(std::make_shared<FakeCall>([] {}));
  };
  std::promise<FakeWorker::Done> runs;
  task_.worker.on_run = [&](const RunPartRequest&, FakeWorker::Done done) {
    runs.set_value(std::move(done));
    return std::shared_ptr<Call>();
  };
  run({"a"}, {});
  const auto kept = receive(here_, kPs, {"a"});
  runs.get_future().get()(std::make_exception_ptr(InvalidArgumentError("bad k")), {});
  EXPECT_THAT([&] { wait_until_done(); }, ThrowsMessage<InvalidArgumentError>(HasSubstr("bad k")));
  try {
    kept->wait();
    ADD_FAILURE() << "the value came";
  } catch (...) {
    EXPECT_TRUE(is_consequence(std::current_exception()));
  }
}

TEST_F(RpcPart, EndsWhenItIsCancelledBeforeItsValuesAreTaken) {
  has(task_.worker, {{"a", large()}}, released_);
  task_.worker.on_run = [](const RunPartRequest&, FakeWorker::Done done) {
    return std::shared_ptr<Call>(std::make_shared<FakeCall>(
        [done = std::move(done)] { done(std::make_exception_ptr(CancelledError("ended")), {}); }));
  };
  run({"a"}, {})->cancel();
  EXPECT_THROW(wait_until_done(), CancelledError);
}

TEST_F(RpcPart, CancellingReleasesWhatThePartNeverTook) {
  has(*own_, {{"x", Tensor::zeros(DType::u8, {64 << 20})}},
      released_);  // more than flow control lets through
  std::promise<void> runs;
  task_.worker.on_run = [&](const RunPartRequest&, FakeWorker::Done done) {
    runs.set_value();
    return std::shared_ptr<Call>(std::make_shared<FakeCall>(
        [done = std::move(done)] { done(std::make_exception_ptr(CancelledError("ended")), {}); }));
  };
  const auto call = run({}, {"x"});
  runs.get_future().wait();
  EXPECT_EQ(*released_, 0);
  call->cancel();
  EXPECT_THROW(wait_until_done(), CancelledError);
  const auto until = std::chrono::steady_clock::now() + kLong;
  while (*released_ < 1 && std::chrono::steady_clock::now() < until) std::this_thread::yield();
  EXPECT_EQ(*released_, 1);
}

TEST_F(RpcPart, OtherKeysThanThoseOfTheCallAreRefused) {
  has(task_.worker, {{"a", Tensor::scalar<float>(1)}}, released_);
  task_.worker.on_run = [](const RunPartRequest&, FakeWorker::Done done) {
    return std::shared_ptr<Call>(std::make_shared<FakeCall>(
        [done = std::move(done)] { done(std::make_exception_ptr(CancelledError("ended")), {}); }));
  };
  const auto call = run({"a"}, {});
  EXPECT_THAT([&] { receive(here_, kPs, {"b"}); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("of which 0 are among the 1")));
  call->cancel();
  EXPECT_THROW(wait_until_done(), CancelledError);
}

}  // namespace
}  // namespace kolo::detail
