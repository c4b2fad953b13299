#include <kolo/collectives/engine/operation.h>

#include <iterator>
#include <utility>

#include <boost/pool/pool_alloc.hpp>

namespace kolo::detail {
namespace {

void hurry(Completion& completion) {
  MutexLock lock(completion.mutex);
  if (completion.hurry) completion.hurry();
}

}  // namespace

bool Operation::wait_until(std::chrono::steady_clock::time_point deadline) {
  if (done) return true;
  if (!sent) hurry(*completion);
  MutexLock lock(completion->mutex);
  while (!done)
    if (!completion->changed.wait_until(completion->mutex, deadline) &&
        std::chrono::steady_clock::now() >= deadline)
      return done;
  return true;
}

void Operation::wait() {
  if (done) return;
  if (!sent) hurry(*completion);
  MutexLock lock(completion->mutex);
  while (!done) completion->changed.wait(completion->mutex);
}

void Operation::then(std::function<void()> work) {
  {
    MutexLock lock(completion->mutex);
    if (!done) {
      afterwards.push_back(std::move(work));
      return;
    }
  }
  work();
}

void Operation::get() {
  wait();
  if (error) std::rethrow_exception(error);
}

OperationPtr make_operation() {
  return std::allocate_shared<Operation>(boost::fast_pool_allocator<Operation>());
}

void finish(std::span<Operation* const> operations, const std::exception_ptr& error) {
  if (operations.empty()) return;
  Completion& completion = *operations.front()->completion;
  std::vector<std::function<void()>> afterwards;
  {
    MutexLock lock(completion.mutex);
    for (Operation* const operation : operations) {
      operation->error = error;
      if (!operation->afterwards.empty())
        std::move(operation->afterwards.begin(), operation->afterwards.end(), std::back_inserter(afterwards));
      operation->afterwards.clear();
      operation->done.store(true, std::memory_order_release);
    }
    completion.changed.notify_all();
  }
  for (const auto& work : afterwards) work();
}

}  // namespace kolo::detail
