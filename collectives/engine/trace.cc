#include <kolo/collectives/engine/trace.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <iterator>
#include <utility>

#include <kolo/collectives/engine/observer.h>

namespace kolo {
namespace {

using Observers = std::vector<std::shared_ptr<EngineObserver>>;

struct TraceRegistry {
  Mutex mutex;
  std::shared_ptr<const Observers> observers KOLO_GUARDED_BY(mutex);
  std::atomic<bool> any{false};  // so that nobody takes the lock while nobody observes
};

// Never destroyed: the communication thread looks at it until the process ends.
TraceRegistry& trace_registry() {
  static auto* const instance = new TraceRegistry;
  return *instance;
}

// nullptr where nobody observes.
std::shared_ptr<const Observers> observers() {
  if (!trace_registry().any) return nullptr;
  MutexLock lock(trace_registry().mutex);
  return trace_registry().observers;
}

using detail::EngineOperation;

// Calls `tell(observer, event)` of each observer.
template <typename Tell>
void observe(int process_set, const EngineOperation& operation, const Tell& tell) {
  const auto all = observers();
  if (!all) return;
  const detail::Request& request = *operation.request;
  EngineEvent event{.name = request.name,
                    .kind = name(request.kind),
                    .bytes = request.bytes(),
                    .process_set = process_set,
                    .sequence = operation.sequence};
  if (!request.tensors.empty()) {
    event.dtype = request.tensors[0].dtype;
    event.shape = request.tensors[0].shape;
  }
  for (const auto& observer : *all) tell(*observer, event);
}

class Observed final : public Collective {
 public:
  Observed(std::shared_ptr<Collective> collective, int process_set, std::vector<EngineOperation*> operations)
      : collective_(std::move(collective)), process_set_(process_set), operations_(std::move(operations)) {}

  void start() override {
    for (const auto& operation : operations_)
      observe(process_set_, *operation, [](auto& observer, const auto& event) { observer.started(event); });
    collective_->start();
  }
  Progress progress() override {
    const Progress progress = collective_->progress();
    if (const char* const now = collective_->phase(); now != nullptr && now != phase_) {
      phase_ = now;
      for (const auto& operation : operations_)
        observe(process_set_, *operation,
                [&](auto& observer, const auto& event) { observer.phase(event, phase_); });
    }
    return progress;
  }
  const char* phase() const override { return collective_->phase(); }

 private:
  const std::shared_ptr<Collective> collective_;
  const int process_set_;
  const std::vector<EngineOperation*> operations_;
  const char* phase_ = nullptr;
};

}  // namespace

namespace detail {

bool EngineTrace::is_observed() { return trace_registry().any; }

void EngineTrace::submitted(const EngineOperation& operation) const {
  observe(process_set_, operation, [](auto& observer, const auto& event) { observer.submitted(event); });
}

void EngineTrace::taken(std::span<const TensorQueue::Item> items) const {
  auto& recorder = thread_->recorder();
  const auto operations = static_cast<std::size_t>(
      std::count_if(items.begin(), items.end(), [](const auto& item) { return !item.refused; }));
  std::size_t skipped = operations - std::min(operations, recorder.capacity());
  auto next = skipped > 0 ? recorder.skip(skipped) : 0;
  for (const auto& item : items) {
    if (item.refused) continue;
    if (skipped == 0) {
      record(*item.operation);
    } else {
      item.operation->record = next++;
      --skipped;
    }
  }
}

// By name alone: its place among the others is not known yet.
void EngineTrace::record(EngineOperation& operation) const {
  const Request& request = *operation.request;
  OperationDetails details{.name = request.name,
                           .kind = name(request.kind),
                           .bytes = request.bytes(),
                           .process_set = process_set_};
  fmt::memory_buffer shape;
  if (!request.tensors.empty()) {
    fmt::format_to(std::back_inserter(shape), "[{}]", fmt::join(request.tensors[0].shape.dims(), ","));
    details.shape = {shape.data(), shape.size()};
    details.dtype = request.tensors[0].dtype;
  }
  operation.record =
      thread_->recorder().submitted(details, std::chrono::steady_clock::now() - operation.submitted);
}

void EngineTrace::negotiated(const EngineOperation& operation) {
  observe(process_set_, operation, [](auto& observer, const auto& event) { observer.negotiated(event); });
  started_.push_back(operation.record);
  Timeline* const timeline = thread_->timeline();
  if (timeline == nullptr) return;
  const Request& request = *operation.request;
  timeline->add({.name = request.name,
                 .category = "negotiation",
                 .lane = request.name,
                 .start = operation.submitted,
                 .end = Timeline::Clock::now(),
                 .bytes = request.bytes()});
}

void EngineTrace::started() {
  thread_->recorder().started(started_);
  started_.clear();
}

std::shared_ptr<Collective> EngineTrace::phases_of(std::shared_ptr<Collective> collective,
                                                   const std::vector<EngineOperation*>& operations) const {
  if (!is_observed()) return collective;
  return std::make_shared<Observed>(std::move(collective), process_set_, operations);
}

void EngineTrace::finished(std::span<EngineOperation* const> operations, const std::exception_ptr& error) {
  for (const EngineOperation* const operation : operations)
    observe(process_set_, *operation,
            [&](auto& observer, const auto& event) { observer.finished(event, error); });
  if (thread_ == nullptr) return;
  ended_.clear();
  for (const EngineOperation* const operation : operations) ended_.push_back(operation->record);
  thread_->recorder().finished(ended_, error != nullptr);
}

}  // namespace detail

void observe_engine(std::shared_ptr<EngineObserver> observer) {
  MutexLock lock(trace_registry().mutex);
  std::shared_ptr<Observers> all;
  if (observer) {
    all = trace_registry().observers ? std::make_shared<Observers>(*trace_registry().observers)
                                     : std::make_shared<Observers>();
    all->push_back(std::move(observer));
  }
  trace_registry().observers = all;
  trace_registry().any = all != nullptr;
}

}  // namespace kolo
