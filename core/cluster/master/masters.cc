#include <kolo/core/cluster/master/masters.h>

#include <map>

#include <kolo/core/base/mutex.h>

namespace kolo::detail {
namespace {

struct Masters {
  Mutex mutex;
  std::map<std::string, std::weak_ptr<Master>> by_target KOLO_GUARDED_BY(mutex);

  static Masters& instance() {
    static auto* const masters = new Masters;  // outlives static servers
    return *masters;
  }
};

}  // namespace

void add_master(const std::string& target, const std::shared_ptr<Master>& master) {
  Masters& masters = Masters::instance();
  MutexLock lock(masters.mutex);
  masters.by_target[target] = master;
}

void remove_master(const std::string& target) {
  Masters& masters = Masters::instance();
  MutexLock lock(masters.mutex);
  masters.by_target.erase(target);
}

std::shared_ptr<Master> find_master(const std::string& target) {
  Masters& masters = Masters::instance();
  MutexLock lock(masters.mutex);
  const auto found = masters.by_target.find(target);
  return found == masters.by_target.end() ? nullptr : found->second.lock();
}

}  // namespace kolo::detail
