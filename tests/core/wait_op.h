// An op that waits: what a test ends by other means.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>

#include <kolo/core/base/error.h>
#include <kolo/core/graph/scope.h>
#include <kolo/core/kernels/cancellable.h>
#include <kolo/core/kernels/kernel.h>
#include <kolo/core/ops/basic.h>

namespace kolo::testing {

struct Waiting {
  std::atomic<int> started{0};
  std::atomic<int> cancelled{0};
};
/// Of all kernels of this process.
inline Waiting waiting;

/// Completes when it is cancelled, and never else.
class WaitKernel final : public AsyncKernel, public Cancellable {
 public:
  void start(KernelContext&, Completion done) override {
    done_ = done;
    ++waiting.started;
  }
  void cancel() override {
    ++waiting.cancelled;
    done_(std::make_exception_ptr(CancelledError("the wait was cancelled")));
  }

 private:
  Completion done_;
};
inline const RegisterOp wait_op(OpSchema("TestWait").input("x", {DType::f32}).output("y").stateful());
inline const RegisterKernel wait_kernel("TestWait", "CPU", {}, KernelFactory([](KernelInit&) {
                                          return std::make_unique<WaitKernel>();
                                        }));

inline Output wait_in(const Scope& s) { return s.add("TestWait", {constant(s, 1.0f)}); }

/// Until so many have, or for 20 s.
inline void wait_until_started(int count) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (waiting.started < count && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
}

}  // namespace kolo::testing
