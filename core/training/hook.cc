#include <kolo/core/training/hook.h>

#include <algorithm>

#include <kolo/core/base/error.h>
#include <kolo/core/training/hook_internal.h>

namespace kolo::detail {
namespace {

void merge(RunOptions& into, const RunOptions& wishes) {
  into.trace_level = std::max(into.trace_level, wishes.trace_level);
  into.timeout_in_ms = std::max(into.timeout_in_ms, wishes.timeout_in_ms);
  // 0 is no wish: it does not take a caller off its own thread alone, −1.
  if (wishes.inter_op_thread_pool != 0)
    into.inter_op_thread_pool = std::max(into.inter_op_thread_pool, wishes.inter_op_thread_pool);
}

}  // namespace

MergedRun::MergedRun(const SessionRunArgs& callers)
    : args_(callers),
      stop_tokens_{callers.options.stop_token},
      callers_feeds_(callers.feeds.size()),
      ends_{callers.fetches.size()} {}

void MergedRun::add(const SessionRunArgs& wishes) {
  const std::size_t feeds_before = args_.feeds.size();
  for (const auto& feed : wishes.feeds) {
    for (std::size_t i = 0; i < feeds_before; ++i) {
      if (args_.feeds[i].first != feed.first) continue;
      if (i < callers_feeds_)
        throw FailedPreconditionError("Same tensor is fed by a SessionRunHook and user.");
      throw FailedPreconditionError("Same tensor is fed by two hooks.");
    }
    args_.feeds.push_back(feed);
  }
  args_.fetches.insert(args_.fetches.end(), wishes.fetches.begin(), wishes.fetches.end());
  merge(args_.options, wishes.options);
  stop_tokens_.push_back(wishes.options.stop_token);
  ends_.push_back(args_.fetches.size());
}

std::vector<Tensor> MergedRun::results_of_hook(std::size_t hook, const std::vector<Tensor>& results) const {
  return {results.begin() + static_cast<std::ptrdiff_t>(ends_.at(hook)),
          results.begin() + static_cast<std::ptrdiff_t>(ends_.at(hook + 1))};
}

std::vector<Tensor> MergedRun::results_of_caller(const std::vector<Tensor>& results) const {
  return {results.begin(), results.begin() + static_cast<std::ptrdiff_t>(ends_.front())};
}

}  // namespace kolo::detail
