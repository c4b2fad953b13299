#include <kolo/core/cluster/worker/copy_sink.h>

#include <utility>

#include <kolo/core/base/mutex.h>

namespace kolo::detail {
namespace {

// The receiver's calls follow one another, values may come at once: the lock is the receiver's own.
class CopySink final : public TensorSink {
 public:
  explicit CopySink(std::shared_ptr<TensorReceiver> receiver) : receiver_(std::move(receiver)) {}

  void put(std::size_t key, const Tensor& value, bool dead, std::function<void()> released) override {
    {
      MutexLock lock(mutex_);
      if (!ended_) bring(key, value, dead);
    }
    released();
  }

  void end(std::exception_ptr error) override {
    MutexLock lock(mutex_);
    if (!std::exchange(ended_, true)) receiver_->ended(std::move(error));
  }

 private:
  void bring(std::size_t key, const Tensor& value, bool dead) KOLO_REQUIRES(mutex_) {
    try {
      Tensor target;
      if (!dead) {
        target = receiver_->memory_for(key, value.dtype(), value.shape());
        target.copy_from(value);
      }
      receiver_->arrived(key, std::move(target), dead);
    } catch (...) {
      ended_ = true;
      receiver_->ended(std::current_exception());
    }
  }

  const std::shared_ptr<TensorReceiver> receiver_;
  Mutex mutex_;
  bool ended_ KOLO_GUARDED_BY(mutex_) = false;
};

}  // namespace

std::shared_ptr<TensorSink> make_copy_sink(std::shared_ptr<TensorReceiver> receiver) {
  return std::make_shared<CopySink>(std::move(receiver));
}

}  // namespace kolo::detail
