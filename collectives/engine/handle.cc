#include <kolo/collectives/engine/handle.h>

#include <kolo/collectives/engine/operation.h>

namespace kolo {

bool AnyHandle::poll() const { return operation_->done; }

bool AnyHandle::wait_until(std::chrono::steady_clock::time_point deadline) const {
  return operation_->wait_until(deadline);
}

void AnyHandle::then(std::function<void()> work) const { operation_->then(std::move(work)); }

const std::string& AnyHandle::name() const { return operation_->request->name; }

void AnyHandle::finish() const { operation_->get(); }

std::vector<Tensor> AnyHandle::take() const {
  std::vector<Tensor> results;
  {
    MutexLock lock(operation_->completion->mutex);
    if (!std::exchange(operation_->taken, true)) results.swap(operation_->results);
    else throw FailedPreconditionError("the result of {} was taken already", operation_->request->name);
  }
  return results;
}

const std::vector<std::int64_t>& AnyHandle::numbers() const { return operation_->numbers; }

}  // namespace kolo
