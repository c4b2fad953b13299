#include <kolo/collectives/engine/detail/observers.h>

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

}  // namespace

namespace detail {

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
