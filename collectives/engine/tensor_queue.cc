#include <kolo/collectives/engine/tensor_queue.h>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include <kolo/core/base/error.h>

namespace kolo::detail {

bool CallAgain::is_same_as(const Request& request) const {
  if (request.kind != kind || request.tensors.size() != 1 || request.reduction != reduction ||
      request.average_over_all != average_over_all || !request.named)
    return false;
  const TensorSpec& tensor = request.tensors[0];
  if (tensor.dtype != buffer.dtype) return false;
  if (shape != nullptr) return tensor.shape == *shape;
  const auto& dims = tensor.shape.dims();
  return dims.size() == 1 && dims[0] == buffer.elements;
}

std::string TensorQueue::next_name(OpKind kind) {
  MutexLock lock(mutex_);
  auto& calls = unnamed_[static_cast<std::size_t>(kind)];
  std::string next = fmt::format("{}.noname.{}", name(kind), calls);
  check_not_joined(kind, next);
  ++calls;
  return next;
}

UnnamedCalls TensorQueue::unnamed_calls() {
  MutexLock lock(mutex_);
  return unnamed_;
}

void TensorQueue::count_unnamed_from(const UnnamedCalls& calls) {
  MutexLock lock(mutex_);
  unnamed_ = calls;
}

void TensorQueue::check_not_joined(OpKind kind, const std::string& name) {
  if (join_)
    throw FailedPreconditionError("{} {}: rank {} has joined; wait for join() to return", detail::name(kind),
                                  name, rank_);
}

bool TensorQueue::add(const OperationPtr& operation) {
  const Request& request = *operation->request;
  MutexLock lock(mutex_);
  if (broken_) std::rethrow_exception(broken_);
  check_not_joined(request.kind, request.name);
  auto found = names_.find(std::string_view(request.name));
  if (found != names_.end() && found->second.pending)
    throw InvalidArgumentError("{} {} is already pending on rank {}; wait for it or give it another name",
                               name(request.kind), request.name, rank_);
  if (check_overlap_) check_memory(*operation);
  if (found == names_.end()) {
    if (names_.size() >= most_names_) forget_free_names();
    found = names_.try_emplace(request.name).first;
  }
  found->second.request = operation->request;
  return add(operation, found->second);
}

std::optional<bool> TensorQueue::add_again(const OperationPtr& operation, const CallAgain& call) {
  MutexLock lock(mutex_);
  if (broken_ || join_) return std::nullopt;
  const auto found = names_.find(call.name);
  if (found == names_.end() || found->second.pending || !call.is_same_as(*found->second.request))
    return std::nullopt;
  operation->request = found->second.request;
  if (check_overlap_) check_memory(*operation);
  return add(operation, found->second);
}

bool TensorQueue::add(const OperationPtr& operation, NameEntry& entry) {
  entry.pending = operation;
  operation->entry = &entry;
  ++pending_;
  if (operation->request->kind == OpKind::join) join_ = operation;
  if (items_.empty()) first_ = operation->submitted;
  items_.push_back({operation, nullptr});
  return items_.size() == 1;
}

// Each entry is looked at once for each that came since the last time, at most.
void TensorQueue::forget_free_names() {
  std::erase_if(names_, [](const auto& name) { return !name.second.pending; });
  most_names_ = std::max(kLeastNames, 2 * names_.size());
}

bool TensorQueue::refuse(std::string name, std::string text) {
  MutexLock lock(mutex_);
  if (broken_ || join_) return false;
  // A name that is pending is in its round already; the call that failed belongs to none.
  if (const auto found = names_.find(std::string_view(name)); found != names_.end() && found->second.pending)
    return false;
  items_.push_back({nullptr, std::make_unique<Refused>(Refused{std::move(name), std::move(text)})});
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
    if (item.operation) item.operation->sent.store(true, std::memory_order_relaxed);
  return false;
}

void TensorQueue::finish(std::span<EngineOperation* const> operations, const std::exception_ptr& error) {
  std::vector<EngineOperation*> ended;
  ended.reserve(operations.size());
  std::vector<OperationPtr> last;  // of whom nobody else may hold any more
  last.reserve(operations.size());
  {
    MutexLock lock(mutex_);
    for (EngineOperation* const operation : operations) {
      NameEntry* const entry = std::exchange(operation->entry, nullptr);
      if (entry == nullptr) continue;
      last.push_back(std::move(entry->pending));
      forget(*operation);
      if (join_.get() == operation) join_ = nullptr;
      if (!operation->request->named) names_.erase(names_.find(std::string_view(operation->request->name)));
      --pending_;
      ended.push_back(operation);
    }
  }
  detail::finish(ended, error);
}

std::vector<OperationPtr> TensorQueue::pending() {
  MutexLock lock(mutex_);
  std::vector<OperationPtr> all;
  if (pending_ == 0) return all;
  for (const auto& [name, entry] : names_)
    if (entry.pending) all.push_back(entry.pending);
  return all;
}

bool TensorQueue::empty() {
  MutexLock lock(mutex_);
  return pending_ == 0;
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
void TensorQueue::check_memory(const EngineOperation& operation) {
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

void TensorQueue::forget(const EngineOperation& operation) {
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
