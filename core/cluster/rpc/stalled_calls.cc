#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include <kolo/core/base/error.h>

#include <kolo/core/cluster/rpc/stalled_calls_internal.h>

namespace kolo::detail {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kShortest{10}, kLongest{5000};

}  // namespace

StalledCalls::StalledCalls(std::shared_ptr<ServerShared> shared)
    : shared_(std::move(shared)), thread_([this] { look_after(); }) {}

StalledCalls::~StalledCalls() {
  {
    MutexLock lock(mutex_);
    over_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

void StalledCalls::look_after() {
  const auto period = std::clamp(shared_->options.limits.stalled_sender / 4, kShortest, kLongest);
  while (true) {
    {
      const auto next = Clock::now() + period;
      MutexLock lock(mutex_);
      while (!over_ && Clock::now() < next) changed_.wait_until(mutex_, next);
      if (over_) return;
    }
    end_stalled();
  }
}

void StalledCalls::end_stalled() {
  const auto now = Clock::now();
  std::vector<std::shared_ptr<ServerCall>> stalled;
  {
    MutexLock lock(shared_->mutex);
    std::copy_if(shared_->calls.all().begin(), shared_->calls.all().end(), std::back_inserter(stalled),
                 [&](const auto& call) { return call->is_stalled(now); });
  }
  const std::chrono::duration<double> limit = shared_->options.limits.stalled_sender;
  for (const auto& call : stalled) {
    call->finish(std::make_exception_ptr(
        DeadlineExceededError("the next message of a call did not come for {} s", limit.count())));
    call->request_stop();  // a handler that waits for it
  }
}

}  // namespace kolo::detail
