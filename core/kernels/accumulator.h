// What an accumulator holds, and who waits for its mean.
#pragma once

#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <kolo/core/base/mutex.h>
#include <kolo/core/kernels/containers.h>
#include <kolo/core/tensor/tensor.h>

namespace kolo::detail {

/// The task whose step a gradient comes from.
struct GradientSender {
  std::string job = "localhost";
  std::int64_t task = 0;
  /// Of a task's name, /job:worker/replica:0/task:1; "": that of a local session.
  static GradientSender of(const std::string& task);
  auto operator<=>(const GradientSender&) const = default;  // NOLINT(modernize-use-nullptr): of clang-tidy 14
};

struct Gradient {
  Tensor values;
  Tensor indices = {};  // of the rows, i64; empty: the values are the whole
};

/// The sum of gradients of one type and shape. One thread at a time.
class GradientSum {
 public:
  virtual ~GradientSum() = default;
  /// Throws InvalidArgumentError for what cannot be added.
  virtual void check(const Gradient& gradient) const = 0;
  /// Adds what has been checked.
  virtual void add(const Gradient& gradient) = 0;
  /// Divides by `count`, the number of gradients, or rows by the number of those that have them.
  virtual Gradient mean(std::int64_t count) = 0;
  /// Forgets all.
  virtual void clear() = 0;
};
std::unique_ptr<GradientSum> make_dense_sum(DType dtype, const Shape& shape);
std::unique_ptr<GradientSum> make_sparse_sum(DType dtype, const Shape& shape);

/// Who waits for a mean, one after the other.
class GradientTaker {
 public:
  virtual ~GradientTaker() = default;
  /// Under the accumulator's lock: the mean is to be copied, for its memory is used again. May throw.
  virtual void take(const Gradient& mean) = 0;
  /// The call is over. Once for each, perhaps before it returns; on any thread, which holds no lock. Must not
  /// throw; the taker may be gone when it returns.
  virtual void finished(std::exception_ptr error) = 0;
};

/// Any thread; calls return at once.
class AccumulatorState final : public Contained {
 public:
  AccumulatorState(std::string name, const Node& node, std::unique_ptr<GradientSum> sum);

  void check_shared_by(const Node& node) const override;
  void drop() override KOLO_EXCLUDES(mutex_);
  /// `"w/grad_accum" has 1 of 2 gradients (missing from …)` as long as the taker's call waits, else "". What
  /// is missing are those of `workers` that have sent none since the last take.
  std::string waits_in(const GradientTaker& taker, const std::vector<std::string>& workers)
      KOLO_EXCLUDES(mutex_);
  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }

  /// Throws as GradientSum::check, and AbortedError for a generation that is not the accumulator's.
  void apply(const Gradient& gradient, std::int64_t local_step, const GradientSender& sender = {},
             std::optional<std::int64_t> generation = {}) KOLO_EXCLUDES(mutex_);
  void take(GradientTaker& taker, std::int64_t required) KOLO_EXCLUDES(mutex_);
  /// The taker's call, if it still waits, finishes with CancelledError.
  void cancel(GradientTaker& taker) KOLO_EXCLUDES(mutex_);
  void set_step(std::int64_t step) KOLO_EXCLUDES(mutex_);
  /// Takes that wait finish with AbortedError.
  void reset(std::optional<std::int64_t> generation = {}) KOLO_EXCLUDES(mutex_);
  std::int64_t num_accumulated() KOLO_EXCLUDES(mutex_);
  /// By sender; those of which none was dropped are not in it.
  std::map<GradientSender, std::int64_t> num_dropped() KOLO_EXCLUDES(mutex_);

 private:
  struct Take {
    GradientTaker* taker;
    std::int64_t required;
  };
  // Told when the lock is free again.
  using Finished = std::vector<std::pair<GradientTaker*, std::exception_ptr>>;
  static void tell(const Finished& finished);

  void serve(Finished& finished) KOLO_REQUIRES(mutex_);
  void give_mean(GradientTaker& taker) KOLO_REQUIRES(mutex_);
  void forget_gradients() KOLO_REQUIRES(mutex_);
  std::exception_ptr was_reset() const;
  void empty(const std::function<std::exception_ptr()>& error, std::optional<std::int64_t> generation = {})
      KOLO_EXCLUDES(mutex_);

  const std::string name_;
  const DType dtype_;
  const Shape shape_;
  const bool ordered_;
  Mutex mutex_;
  const std::unique_ptr<GradientSum> sum_;  // add, mean and clear under the lock
  // Where they are ordered: those of one sender as they came.
  std::multimap<GradientSender, Gradient> kept_ KOLO_GUARDED_BY(mutex_);
  std::int64_t count_ KOLO_GUARDED_BY(mutex_) = 0;
  std::set<GradientSender> senders_ KOLO_GUARDED_BY(mutex_);  // of those that are counted
  std::int64_t step_ KOLO_GUARDED_BY(mutex_) = 0;
  std::int64_t generation_ KOLO_GUARDED_BY(mutex_) = 0;
  std::map<GradientSender, std::int64_t> dropped_ KOLO_GUARDED_BY(mutex_);
  std::deque<Take> takes_ KOLO_GUARDED_BY(mutex_);
};

}  // namespace kolo::detail
