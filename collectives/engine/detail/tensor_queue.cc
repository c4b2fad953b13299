#include <kolo/collectives/engine/detail/tensor_queue.h>

#include <fmt/format.h>

#include <utility>

#include <kolo/core/base/error.h>

namespace kolo::detail {

std::string TensorQueue::next_name(OpKind kind) {
  MutexLock lock(mutex_);
  return fmt::format("{}.noname.{}", name(kind), unnamed_[static_cast<std::size_t>(kind)]++);
}

bool TensorQueue::add(const OperationPtr& operation) {
  const Request& request = *operation->request;
  MutexLock lock(mutex_);
  if (broken_) std::rethrow_exception(broken_);
  if (join_)
    throw FailedPreconditionError("{} {}: rank {} has joined; wait for join() to return", name(request.kind),
                                  request.name, rank_);
  if (pending_.count(request.name) > 0)
    throw InvalidArgumentError("{} {} is already pending on rank {}; wait for it or give it another name",
                               name(request.kind), request.name, rank_);
  if (check_overlap_) check_memory(*operation);
  pending_.emplace(request.name, operation);
  if (request.kind == OpKind::join) join_ = operation;
  if (items_.empty()) first_ = operation->submitted;
  items_.push_back({operation, {}, {}});
  return items_.size() == 1;
}

bool TensorQueue::refuse(std::string name, std::string text) {
  MutexLock lock(mutex_);
  if (broken_) return false;
  items_.push_back({nullptr, std::move(name), std::move(text)});
  in_hurry_ = true;
  return items_.size() == 1;
}

void TensorQueue::hurry() {
  MutexLock lock(mutex_);
  in_hurry_ = true;
}

bool TensorQueue::take(Clock::time_point now, Clock::duration cycle, std::vector<Item>& items) {
  items.clear();
  MutexLock lock(mutex_);
  if (items_.empty()) {
    in_hurry_ = false;
    return false;
  }
  if (!in_hurry_ && now - first_ < cycle) return true;
  items.swap(items_);
  in_hurry_ = false;
  for (const auto& item : items)
    if (item.operation) item.operation->sent = true;
  return false;
}

OperationPtr TensorQueue::find(const std::string& name) {
  MutexLock lock(mutex_);
  const auto found = pending_.find(name);
  return found == pending_.end() ? nullptr : found->second;
}

void TensorQueue::finish(const std::vector<OperationPtr>& operations, const std::exception_ptr& error) {
  std::vector<OperationPtr> ended;
  {
    MutexLock lock(mutex_);
    for (const auto& operation : operations) {
      const auto found = pending_.find(operation->request->name);
      if (found == pending_.end() || found->second != operation) continue;
      pending_.erase(found);
      forget(*operation);
      if (join_ == operation) join_ = nullptr;
      ended.push_back(operation);
    }
  }
  detail::finish(ended, error);
}

std::vector<OperationPtr> TensorQueue::pending() {
  MutexLock lock(mutex_);
  std::vector<OperationPtr> all;
  for (const auto& [name, operation] : pending_) all.push_back(operation);
  return all;
}

bool TensorQueue::empty() {
  MutexLock lock(mutex_);
  return pending_.empty();
}

void TensorQueue::break_off(const std::exception_ptr& error) {
  MutexLock lock(mutex_);
  if (!broken_) broken_ = error;
}

std::exception_ptr TensorQueue::broken() {
  MutexLock lock(mutex_);
  return broken_;
}

// Pending ranges may overlap among each other only where nobody writes, so looking back from the first one
// behind needs no more than the ranges that begin before this one's end.
void TensorQueue::check_memory(const Operation& operation) {
  for (const auto& buffer : operation.buffers) {
    const std::byte* const begin = buffer.bytes;
    const std::byte* const end = begin + buffer.elements * static_cast<std::int64_t>(size_of(buffer.dtype));
    if (begin == end) continue;
    for (const auto& [first, range] : memory_) {
      if (first >= end) break;
      if (range.end > begin && (operation.writes || range.operation->writes))
        throw InvalidArgumentError(
            "{} {} uses memory that {} {}, which is pending on rank {}, uses too; wait for that first",
            name(operation.request->kind), operation.request->name, name(range.operation->request->kind),
            range.operation->request->name, rank_);
    }
  }
  for (const auto& buffer : operation.buffers) {
    const std::byte* const end =
        buffer.bytes + buffer.elements * static_cast<std::int64_t>(size_of(buffer.dtype));
    if (buffer.bytes != end) memory_.emplace(buffer.bytes, Range{end, &operation});
  }
}

void TensorQueue::forget(const Operation& operation) {
  if (!check_overlap_) return;
  for (const auto& buffer : operation.buffers) {
    const auto [first, last] = memory_.equal_range(buffer.bytes);
    for (auto range = first; range != last; ++range)
      if (range->second.operation == &operation) {
        memory_.erase(range);
        break;
      }
  }
}

}  // namespace kolo::detail
