// What init() makes and shutdown() takes down: the communication thread and the communicator of all ranks.
#pragma once

#include <unistd.h>

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <kolo/collectives/algorithms/mpi_communicator.h>
#include <kolo/collectives/engine/engine.h>
#include <kolo/collectives/engine/options.h>
#include <kolo/collectives/job/stop_notice.h>
#include <kolo/collectives/progress/comm_thread.h>
#include <kolo/collectives/progress/flight_recorder.h>
#include <kolo/collectives/transport/lifelines.h>
#include <kolo/collectives/transport/mpi.h>
#include <kolo/collectives/transport/node_memory.h>
#include <kolo/core/base/mutex.h>
#include <kolo/core/base/process.h>
#include <kolo/core/tensor/allocator.h>

namespace kolo::detail {

/// Channel of the operations outside training steps: one thread at a time.
inline constexpr int kControlChannel = 0;

class Runtime {
 public:
  /// One rank without MPI: no thread, no traffic.
  explicit Runtime(EngineOptions options);
  /// Starts MPI, unless the program did, and the thread that makes all of kolo's MPI calls. make_comm runs
  /// there.
  Runtime(EngineOptions options, int* argc, char*** argv, const std::function<MpiComm()>& make_comm);
  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  const EngineOptions& options() const { return options_; }
  const ProcessInfo& process() const { return process_; }
  /// For eager callers; of one rank, too.
  Engine& engine() { return *engine_; }
  /// False for one rank: nothing below may be used then.
  bool has_peers() const { return process_.size > 1; }
  CommThread& thread() { return *thread_; }
  MpiCommunicator& world() { return *world_; }
  /// Of the same ranks; nobody's messages but the watchdog's.
  MPI_Comm comm() const { return mailbox_->comm(); }
  /// Where the ranks of this node see each other's memory it comes from there, else it is ordinary memory.
  Allocator& bucket_allocator() const { return node_ ? node_.own() : cpu_allocator(); }
  /// The memory of all ranks, where all of the job see each other's; else an empty one. The same on all.
  NodeView memory_of_all() const { return world_->topology().nodes() == 1 ? node_ : NodeView(); }
  /// Until the ranks have left: others may still read it, whatever its owner does. Any thread.
  void keep(std::shared_ptr<Buffer> memory) KOLO_EXCLUDES(kept_mutex_) {
    MutexLock lock(kept_mutex_);
    kept_.push_back(std::move(memory));
  }
  const std::string& mpi_library() const { return mpi_library_; }

  /// Decides which algorithms the world uses, see decide_costs(). On all ranks, once their options agree.
  void tune();

  /// False in a process that was forked off the one that called init: this is not its runtime.
  bool is_own() const { return getpid() == process_id_; }
  /// This process ends the job: its neighbours need not tell that it is gone. Any thread.
  void say_goodbye() {
    if (lifelines_) lifelines_->say_goodbye();
  }
  /// Of the end of this host, as KOLO_STOP_WHEN and KOLO_STOP_FILE ask, and by rank 0 of the job's,
  /// KOLO_STOP_BEFORE; until leave(). By one rank of a host.
  void look_for_notice() { notice_ = StopNotice::of(StopNotice::plan_of_environment(), process_.rank == 0); }
  /// Ends what is pending, tells the other ranks and waits until all have left; finalises MPI if it started
  /// it.
  /// without_mpi ends the process; it is called, on a thread of its own, where MPI_Finalize does not return
  /// (finalize_mpi.h). Without it that is waited for.
  void leave(std::function<void()> without_mpi = nullptr);
  /// Runs in leave(), on the communication thread, when that runs no operations any more; or as soon as they
  /// have all been given up, as the process may be ended then. Takes the place of what was given before.
  /// together: all ranks are here. On the communication thread.
  void at_leave(std::function<void(bool together)> work) { at_leave_ = std::move(work); }
  /// Runs once all ranks have left, before MPI_Finalize: none of them has ended. On the communication thread,
  /// where there is one.
  void before_end(std::function<void()> work) { before_end_ = std::move(work); }

 private:
  void start_mpi(int* argc, char*** argv);
  void find_peers(const MpiComm& comm);
  void join_neighbours();
  void tell_loss(int rank, bool with_host);
  void look_after_neighbours();
  void do_idle_work();
  void wait_for_others();
  void leave_alone() {
    if (at_leave_) at_leave_(false);
  }

  const pid_t process_id_ = getpid();
  EngineOptions options_;
  ProcessInfo process_;
  bool owns_mpi_ = false;
  std::string mpi_library_;
  NodeView node_;
  Mutex kept_mutex_;
  std::vector<std::shared_ptr<Buffer>> kept_ KOLO_GUARDED_BY(kept_mutex_);
  std::unique_ptr<CommThread> thread_;
  std::unique_ptr<MpiCommunicator> world_;
  std::unique_ptr<MpiMailbox> mailbox_;
  std::unique_ptr<MpiMailbox> engine_mailbox_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<RecordOnSignal> record_on_signal_;
  std::unique_ptr<StopNotice> notice_;
  std::vector<std::string> hosts_;
  std::atomic<int> lost_rank_{-1}, second_lost_rank_{-1};  // neighbours
  std::function<void(bool together)> at_leave_;
  std::function<void()> before_end_;
  std::unique_ptr<Lifelines> lifelines_;  // its thread uses the above
};

/// The runtime of this process, nullptr before init and after shutdown. Any thread.
std::shared_ptr<Runtime> current_runtime();
void set_current_runtime(std::shared_ptr<Runtime> runtime);

}  // namespace kolo::detail
