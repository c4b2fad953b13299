// A step whose signature is bound once: for loops in which looking up the plan and making results would cost
// as much as the step.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include <kolo/core/runtime/session.h>

namespace kolo {

struct CallableSignature {
  std::vector<FeedTarget> feeds = {};  // in the order in which a call gives their values
  std::vector<Fetch> fetches = {};     // tensors: in the order in which a call gets their values
  std::vector<Fetch> targets = {};     // operations
};

/// Made by Session::make_callable. Calls: any thread, several at a time. It may outlive its session, but not
/// the graph: calls after the session's end throw as Session::run does on a closed one.
class Callable {
 public:
  /// One tensor for each feed, of its type and a shape that fits. results: one for each fetch; a tensor that
  /// has the fetch's type and shape is written into, any other is replaced by a new one. Throws as
  /// Session::run; results are then unchanged.
  /// With shapes that do not change from call to call, calls after the first allocate nothing but what the
  /// kernels do.
  void run(std::span<const Tensor> feeds, std::span<Tensor> results, RunMetadata* metadata = nullptr) const;
  /// With results of its own making.
  std::vector<Tensor> operator()(const std::vector<Tensor>& feeds = {}) const;

 private:
  friend class Session;
  class Impl;
  explicit Callable(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<Impl> impl_;
};

}  // namespace kolo
