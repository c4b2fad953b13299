#include <kolo/core/runtime/pools.h>

#include <algorithm>
#include <map>
#include <string>

#include <kolo/core/base/cores.h>
#include <kolo/core/base/env.h>
#include <kolo/core/base/error.h>
#include <kolo/core/base/mutex.h>

namespace kolo::detail {
namespace {

// What sessions of one process share. Pools stay until the process ends: sizes must stay what they were made.
struct SharedPools {
  struct Named {
    int num_threads;
    std::shared_ptr<ThreadPool> pool;
  };
  Mutex mutex;
  int intra_op_threads KOLO_GUARDED_BY(mutex) = 0;  // 0: not fixed yet
  bool has_global KOLO_GUARDED_BY(mutex) = false;
  std::shared_ptr<ThreadPool> global KOLO_GUARDED_BY(mutex);
  std::map<std::string, Named> named KOLO_GUARDED_BY(mutex);
};

SharedPools& shared_pools() {
  static SharedPools pools;
  return pools;
}

// The caller's thread is one of them.
std::shared_ptr<ThreadPool> make_pool(int threads) {
  return threads > 1 ? std::make_shared<ThreadPool>("kolo-inter-op", threads - 1) : nullptr;
}

std::shared_ptr<ThreadPool> global_pool(int threads) {
  SharedPools& shared = shared_pools();
  MutexLock lock(shared.mutex);
  if (!shared.has_global) shared.global = make_pool(threads);
  shared.has_global = true;
  return shared.global;
}

std::shared_ptr<ThreadPool> named_pool(const ThreadPoolOptions& options, int default_threads) {
  SharedPools& shared = shared_pools();
  MutexLock lock(shared.mutex);
  const auto found = shared.named.find(options.global_name);
  if (found != shared.named.end()) {
    if (found->second.num_threads != options.num_threads)
      throw InvalidArgumentError(
          "Pool {} configured previously with num_threads={}; cannot re-configure with num_threads={}",
          options.global_name, found->second.num_threads, options.num_threads);
    return found->second.pool;
  }
  auto pool = make_pool(options.num_threads > 0 ? options.num_threads : default_threads);
  shared.named.emplace(options.global_name, SharedPools::Named{options.num_threads, pool});
  return pool;
}

}  // namespace

int intra_op_threads_of_process(int configured) {
  if (configured < 0)
    throw InvalidArgumentError("intra_op_parallelism_threads is {}; it must be at least 0", configured);
  SharedPools& shared = shared_pools();
  MutexLock lock(shared.mutex);
  if (shared.intra_op_threads == 0) {
    if (configured > 0) shared.intra_op_threads = configured;
    else if (const auto threads = omp_num_threads()) shared.intra_op_threads = *threads;
    else shared.intra_op_threads = cores_of_rank();  // takes milliseconds
  }
  return shared.intra_op_threads;
}

SessionPools::SessionPools(const SessionConfig& config, int default_threads) {
  const int inter_op = config.inter_op_parallelism_threads;
  const int threads = inter_op == 0 ? default_threads : std::max(1, inter_op);
  for (const ThreadPoolOptions& pool : config.session_inter_op_thread_pool)
    if (pool.num_threads < 0)
      throw InvalidArgumentError("session_inter_op_thread_pool: num_threads is {}; it must be at least 0",
                                 pool.num_threads);
  for (const ThreadPoolOptions& pool : config.session_inter_op_thread_pool) {
    if (!pool.global_name.empty()) pools_.push_back(named_pool(pool, threads));
    else pools_.push_back(make_pool(pool.num_threads > 0 ? pool.num_threads : threads));
  }
  if (!pools_.empty()) return;
  if (inter_op < 0) pools_.push_back(nullptr);
  else pools_.push_back(config.use_per_session_threads ? make_pool(threads) : global_pool(threads));
}

ThreadPool* SessionPools::at(int index) const {
  if (index == -1) return nullptr;
  if (index < 0 || index >= static_cast<int>(pools_.size()))
    throw InvalidArgumentError("Invalid inter_op_thread_pool: {}", index);
  return pools_[static_cast<std::size_t>(index)].get();
}

}  // namespace kolo::detail
