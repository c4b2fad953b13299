#include <kolo/collectives/job/finalize_mpi.h>

#include <mpi.h>

#include <chrono>
#include <thread>
#include <utility>

#include <kolo/collectives/transport/mpi.h>
#include <kolo/core/base/log.h>
#include <kolo/core/base/mutex.h>

namespace kolo::detail {
namespace {

#ifdef OPEN_MPI
constexpr bool kMayHang = false;
#else
// A program of MPI alone hung in 36 of 40 runs under srun, on two hosts, where one rank came a second late.
constexpr bool kMayHang = true;
#endif

constexpr std::chrono::seconds kToFinalize{10};

class FinalizeAlarm {
 public:
  explicit FinalizeAlarm(std::function<void()> without_mpi)
      : without_mpi_(std::move(without_mpi)), thread_([this] { watch(); }) {}
  ~FinalizeAlarm() {
    {
      MutexLock lock(mutex_);
      is_over_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  FinalizeAlarm(const FinalizeAlarm&) = delete;
  FinalizeAlarm& operator=(const FinalizeAlarm&) = delete;

 private:
  void watch() {
    {
      const auto deadline = std::chrono::steady_clock::now() + kToFinalize;
      MutexLock lock(mutex_);
      while (!is_over_ && std::chrono::steady_clock::now() < deadline) changed_.wait_until(mutex_, deadline);
      if (is_over_) return;
    }
    log_warning("MPI_Finalize has not returned within {} s, though all ranks have come to it; ending without",
                kToFinalize.count());
    without_mpi_();
  }

  const std::function<void()> without_mpi_;
  Mutex mutex_;
  CondVar changed_;
  bool is_over_ KOLO_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace

void finalize_mpi(std::function<void()> without_mpi) {
  if (!kMayHang || !without_mpi) return check_mpi(MPI_Finalize(), "MPI_Finalize");
  const FinalizeAlarm alarm(std::move(without_mpi));
  check_mpi(MPI_Finalize(), "MPI_Finalize");
}

}  // namespace kolo::detail
