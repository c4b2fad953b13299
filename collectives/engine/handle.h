// A collective that is under way for an eager caller.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <kolo/core/base/error.h>
#include <kolo/core/tensor/tensor.h>

namespace kolo {

namespace detail {
struct EngineOperation;
}

/// What all handles share. Any thread. Dropping a handle does not cancel the operation; memory that was given
/// as a span must live until it has ended.
class AnyHandle {
 public:
  explicit AnyHandle(std::shared_ptr<detail::EngineOperation> operation) : operation_(std::move(operation)) {}

  /// The operation has ended, well or not. Does not wait.
  bool poll() const;
  /// Waits at most so long; true if the operation has ended. Throws nothing of the operation's.
  template <typename Rep, typename Period>
  bool wait_for(std::chrono::duration<Rep, Period> time) const {
    return wait_until(std::chrono::steady_clock::now() +
                      std::chrono::duration_cast<std::chrono::steady_clock::duration>(time));
  }
  bool wait_until(std::chrono::steady_clock::time_point deadline) const;
  /// Calls `work` once when the operation has ended, on the thread that ends it, or at once if it has. It
  /// must be quick, must not throw and must not start another operation.
  void then(std::function<void()> work) const;
  /// The name under which the ranks know the operation.
  const std::string& name() const;

 protected:
  /// Waits for the end; throws the operation's error.
  void finish() const;
  /// What the operation has made, once: FailedPreconditionError `the result of <name> was taken already`.
  std::vector<Tensor> take() const;
  const std::vector<std::int64_t>& numbers() const;

 private:
  std::shared_ptr<detail::EngineOperation> operation_;
};

/// The rows that an alltoall has brought, and how many of them from each rank.
struct AlltoallResult {
  Tensor tensor;
  std::vector<std::int64_t> splits;
};
/// What alltoall gives a rank: rows, and how many came from each rank.
template <typename T>
struct AlltoallRows {
  std::vector<T> elements;
  std::vector<std::int64_t> splits;
};

/// wait() waits, throws the operation's error, and hands out the result, which can be taken once. Result is
/// void where the memory that was given holds it; else a Tensor, several, their elements, the last rank that
/// joined, or bytes. Any thread.
template <typename Result>
class Handle : public AnyHandle {
 public:
  using AnyHandle::AnyHandle;
  Result wait() const {
    finish();
    return result(static_cast<Result*>(nullptr));
  }
  /// After wait(), of an allgather: rows of each rank.
  const std::vector<std::int64_t>& rows_by_rank() const { return numbers(); }

 private:
  Tensor result(Tensor*) const { return std::move(take()[0]); }
  std::vector<Tensor> result(std::vector<Tensor>*) const { return take(); }
  int result(int*) const { return static_cast<int>(numbers()[0]); }
  AlltoallResult result(AlltoallResult*) const { return {std::move(take()[0]), numbers()}; }
  template <typename T>
  std::vector<T> result(std::vector<T>*) const {
    const Tensor tensor = std::move(take()[0]);
    const auto elements = tensor.template span<T>();
    return std::vector<T>(elements.begin(), elements.end());
  }
  template <typename T>
  AlltoallRows<T> result(AlltoallRows<T>*) const {
    return {result(static_cast<std::vector<T>*>(nullptr)), numbers()};
  }
  std::string result(std::string*) const { return text(std::move(take()[0]), 0, -1); }
  std::vector<std::string> result(std::vector<std::string>*) const {
    const Tensor bytes = std::move(take()[0]);
    std::vector<std::string> texts;
    std::int64_t first = 0;
    for (const auto length : numbers()) {
      texts.push_back(text(bytes, first, length));
      first += length;
    }
    return texts;
  }
  static std::string text(const Tensor& bytes, std::int64_t first, std::int64_t length) {
    return std::string(reinterpret_cast<const char*>(bytes.raw()) + first,
                       static_cast<std::size_t>(length < 0 ? bytes.elements() : length));
  }
};

template <>
class Handle<void> : public AnyHandle {
 public:
  using AnyHandle::AnyHandle;
  /// May be called again.
  void wait() const { finish(); }
};

}  // namespace kolo
