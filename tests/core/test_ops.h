// Ops for the tests of the core: what they compute is trivial, so that a test sees nothing but the graph and
// the executor. They are stateful, since a test counts their calls: no pass folds, merges or drops them.
#pragma once

#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include <kolo/core/base/error.h>
#include <kolo/core/graph/scope.h>
#include <kolo/core/kernels/kernel.h>

namespace kolo::testing {

/// Called by every kernel of the op TestCall, with the node's attribute "tag". Set before a session runs.
inline std::function<void(std::int64_t tag)> on_call = [](std::int64_t) {};
/// How many times a TestAdd kernel has run in this process.
inline std::atomic<int> additions{0};

inline const RegisterOp test_call_op(OpSchema("TestCall")
                                         .variadic("inputs", {}, true)
                                         .required_attr("tag", 0)
                                         .attr("shape", Shape())
                                         .output("y", DType::f32)
                                         .shape([](ShapeContext& c) {
                                           c.set_output(0, c.attr<Shape>("shape"));
                                         })
                                         .stateful()
                                         .no_gradient());
inline const RegisterOp test_add_op(OpSchema("TestAdd")
                                        .input("a", {DType::f32})
                                        .input("b", "a")
                                        .output("sum")
                                        .in_place(0)
                                        .stateful()
                                        .gradient([](Scope&, const Node&, Output dy) {
                                          return Outputs{dy, dy};
                                        }));
inline const RegisterOp test_async_op(
    OpSchema("TestAsync").input("x", {DType::f32}).required_attr("tag", 0).output("y").stateful());
inline const RegisterOp test_undifferentiable_op(
    OpSchema("TestUndifferentiable").input("x", {DType::f32}).output("y"));

class TestCallKernel final : public Kernel {
 public:
  explicit TestCallKernel(std::int64_t tag) : tag_(tag) {}
  void compute(KernelContext& context) override {
    on_call(tag_);
    for (float& element : context.output(0).span<float>()) element = static_cast<float>(tag_);
  }

 private:
  std::int64_t tag_;
};

// Completes on a thread of its own, as a reduction does.
class TestAsyncKernel final : public AsyncKernel {
 public:
  explicit TestAsyncKernel(std::int64_t tag) : tag_(tag) {}
  ~TestAsyncKernel() override {
    if (thread_.joinable()) thread_.join();
  }
  void start(KernelContext& context, Completion done) override {
    if (thread_.joinable()) thread_.join();
    thread_ = std::thread([this, context, done]() mutable {
      try {
        on_call(tag_);
        context.output(0).copy_from(context.input(0));
        done();
      } catch (...) {
        done(std::current_exception());
      }
    });
  }

 private:
  std::int64_t tag_;
  std::thread thread_;
};

inline const RegisterKernel test_call_kernel("TestCall", "CPU", {}, KernelFactory([](KernelInit& init) {
                                               return std::make_unique<TestCallKernel>(
                                                   init.attr<std::int64_t>("tag"));
                                             }));
inline const RegisterKernel test_async_kernel("TestAsync", "CPU", {}, KernelFactory([](KernelInit& init) {
                                                return std::make_unique<TestAsyncKernel>(
                                                    init.attr<std::int64_t>("tag"));
                                              }));
inline const RegisterKernel test_add_kernel("TestAdd", "CPU", {DType::f32}, [](KernelContext& c) {
  ++additions;
  for (std::int64_t i = 0; i < c.output(0).elements(); ++i)
    c.output(0).data<float>()[i] = c.input(0).data<float>()[i] + c.input(1).data<float>()[i];
});

/// A node that calls on_call(tag) and gives a tensor of `shape` filled with tag.
inline Output call(const Scope& s, std::int64_t tag, const Outputs& inputs = {}, Shape shape = {}) {
  return s.add("TestCall", inputs, {{"tag", tag}, {"shape", std::move(shape)}}, "call" + std::to_string(tag));
}
inline Output add(const Scope& s, Output a, Output b) { return s.add("TestAdd", {a, b}); }

}  // namespace kolo::testing
