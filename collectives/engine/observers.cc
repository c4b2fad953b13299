#include <kolo/collectives/engine/observers.h>

#include <atomic>
#include <utility>

namespace kolo {
namespace {

using Observers = std::vector<std::shared_ptr<EngineObserver>>;

struct Registry {
  Mutex mutex;
  std::shared_ptr<const Observers> observers KOLO_GUARDED_BY(mutex);
  std::atomic<bool> any{false};  // so that nobody takes the lock while nobody observes
};

// Never destroyed: the communication thread looks at it until the process ends.
Registry& registry() {
  static auto* const instance = new Registry;
  return *instance;
}

using detail::observe;
using detail::Operation;

class Observed final : public Collective {
 public:
  Observed(std::shared_ptr<Collective> collective, int process_set, std::vector<Operation*> operations)
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
  const std::vector<Operation*> operations_;
  const char* phase_ = nullptr;
};

}  // namespace

namespace detail {

std::shared_ptr<Collective> observed(std::shared_ptr<Collective> collective, int process_set,
                                     const std::vector<Operation*>& operations) {
  if (!observers()) return collective;
  return std::make_shared<Observed>(std::move(collective), process_set, operations);
}

std::shared_ptr<const Observers> observers() {
  if (!registry().any) return nullptr;
  MutexLock lock(registry().mutex);
  return registry().observers;
}

}  // namespace detail

void observe_engine(std::shared_ptr<EngineObserver> observer) {
  MutexLock lock(registry().mutex);
  std::shared_ptr<Observers> all;
  if (observer) {
    all = registry().observers ? std::make_shared<Observers>(*registry().observers)
                               : std::make_shared<Observers>();
    all->push_back(std::move(observer));
  }
  registry().observers = all;
  registry().any = all != nullptr;
}

}  // namespace kolo
