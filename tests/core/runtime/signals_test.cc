// Signals that arrive while kernels run on the thread that takes them.
#include <gmock/gmock.h>

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>

#include <kolo/core/base/stop_signal.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/linalg.h>
#include <kolo/core/runtime/session.h>

namespace kolo {
namespace {

Tensor ramp(const Shape& shape, int period) {
  Tensor tensor(DType::f32, shape);
  float* const elements = tensor.data<float>();
  const int middle = period / 2;
  for (std::int64_t i = 0; i < tensor.elements(); ++i) elements[i] = static_cast<float>(i % period - middle);
  return tensor;
}

// Sends this process a SIGUSR1 every 100 µs for as long as it lives.
class SignalStorm {
 public:
  SignalStorm() {
    thread_ = std::thread([this] {
      block_stop_signals();
      while (!stopping_.load()) {
        kill(getpid(), SIGUSR1);
        std::this_thread::sleep_for(std::chrono::microseconds(100));
      }
    });
  }
  ~SignalStorm() {
    stopping_.store(true);
    thread_.join();
  }

 private:
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

TEST(Signals, DoNotDisturbAMatrixProductUnderWay) {
  install_stop_signals();
  Graph graph;
  const Scope s(graph);
  const Output rows = placeholder(s, DType::f32, {32, 1024});  // of constants the product would be made once
  const Output product = matmul(s, rows, constant(s, ramp({1024, 1024}, 5)));
  const Tensor fed = ramp({32, 1024}, 7);
  Session session(graph, {.intra_op_parallelism_threads = 1, .inter_op_parallelism_threads = 1});
  const Tensor expected = session.run(product, {{rows, fed}});

  const SignalStorm storm;
  for (int run = 0; run < 1000; ++run) {
    const Tensor again = session.run(product, {{rows, fed}});
    ASSERT_EQ(std::memcmp(again.raw(), expected.raw(), expected.bytes()), 0) << "in run " << run;
  }
  EXPECT_TRUE(stop_signal_received());
}

}  // namespace
}  // namespace kolo
