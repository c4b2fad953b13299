#include <kolo/collectives/job/runtime.h>

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <random>
#include <thread>
#include <utility>

#include <kolo/collectives/job/finalize_mpi.h>
#include <kolo/collectives/job/init_alarm.h>
#include <kolo/collectives/job/settings.h>
#include <kolo/collectives/transport/mpi.h>
#include <kolo/collectives/transport/open_files.h>
#include <kolo/collectives/transport/topology.h>
#include <kolo/core/base/error.h>
#include <kolo/core/base/launcher.h>
#include <kolo/core/base/log.h>
#include <kolo/core/base/mutex.h>
#include <kolo/core/base/stop_signal.h>

namespace kolo::detail {
namespace {

using namespace std::chrono_literals;

// How long a rank whose collectives have failed waits for the others to leave as well.
constexpr auto kLeaveAfterError = 5s;
// One of them never will.
constexpr auto kLeaveAfterLoss = 1s;
constexpr auto kJoinNeighbours = 2000ms;

struct Current {
  Mutex mutex;
  std::shared_ptr<Runtime> runtime KOLO_GUARDED_BY(mutex);
};

// Never destroyed: the exit handler, and schedules in static storage, still look at it.
Current& current() {
  static auto* const instance = new Current;
  return *instance;
}

struct Names {
  int bytes = 1;         // of the longest, and a zero
  bool of_hosts = true;  // the ranks of each host have one name; else they are containers with their own
};
Names measure_names(MPI_Comm comm, MPI_Comm host, const std::string& own) {
  std::array<char, 256> first{};  // longest host name of POSIX, and a zero
  own.copy(first.data(), first.size() - 1);
  check_mpi(MPI_Bcast(first.data(), static_cast<int>(first.size()), MPI_BYTE, 0, host), "MPI_Bcast");
  std::array<int, 2> most = {static_cast<int>(own.size()) + 1, own == first.data() ? 0 : 1};
  check_mpi(MPI_Allreduce(MPI_IN_PLACE, most.data(), 2, MPI_INT, MPI_MAX, comm), "MPI_Allreduce");
  return {.bytes = most[0], .of_hosts = most[1] == 0};
}

// By rank. The first rank of each host tells its name: what travels grows with the hosts, in log n messages.
std::vector<std::string> gather_hosts(MPI_Comm comm, MPI_Comm host, const Topology& topology, int rank,
                                      const std::string& own) {
  const Names names = measure_names(comm, host, own);
  const auto place_of = [&](int of) {
    return static_cast<std::ptrdiff_t>(names.bytes) * (names.of_hosts ? topology.node_of(of) : of);
  };
  const int places = names.of_hosts ? topology.nodes() : topology.ranks();
  std::string all(static_cast<std::size_t>(names.bytes) * places, '\0');
  if (!names.of_hosts || topology.local_rank(rank) == 0)
    std::copy(own.begin(), own.end(), all.begin() + place_of(rank));
  // The others have zeros there.
  check_mpi(
      MPI_Allreduce(MPI_IN_PLACE, all.data(), static_cast<int>(all.size()), MPI_UNSIGNED_CHAR, MPI_MAX, comm),
      "MPI_Allreduce");
  std::vector<std::string> hosts;
  for (int other = 0; other < topology.ranks(); ++other) hosts.emplace_back(all.c_str() + place_of(other));
  return hosts;
}

// Of the whole process: this may be the communication thread, which has a core of its own where one was asked
// for.
cpu_set_t affinity_mask() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  if (sched_getaffinity(getpid(), sizeof mask, &mask) != 0) CPU_SET(0, &mask);
  return mask;
}

// The ranks of `host` that have this mask. mpirun's ranks have the same one, each its own, or one for each
// socket.
int count_sharers(MPI_Comm host, int ranks, const cpu_set_t& own) {
  std::vector<cpu_set_t> all(ranks);
  check_mpi(MPI_Allgather(&own, sizeof own, MPI_BYTE, all.data(), sizeof own, MPI_BYTE, host),
            "MPI_Allgather");
  return static_cast<int>(
      std::count_if(all.begin(), all.end(), [&](const cpu_set_t& other) { return CPU_EQUAL(&other, &own); }));
}

// Rank 0's, on all ranks. Drawn, as mpirun gives a later job the number of an earlier one.
std::string agree_on_job(MPI_Comm comm) {
  std::random_device random;
  std::uint64_t job = std::uniform_int_distribution<std::uint64_t>()(random);
  check_mpi(MPI_Bcast(&job, 1, MPI_UINT64_T, 0, comm), "MPI_Bcast");
  return fmt::format("{:016x}", job);
}

}  // namespace

Runtime::Runtime(EngineOptions options) : options_(std::move(options)) {
  process_.hostname = kolo::process().hostname;
  engine_ = std::make_unique<Engine>(options_);
}

Runtime::Runtime(EngineOptions options, int* argc, char*** argv, const std::function<MpiComm()>& make_comm)
    : Runtime(std::move(options)) {
  thread_ = std::make_unique<CommThread>(options_.comm_thread_core);
  thread_->open_channel();  // kControlChannel
  InitAlarm alarm({.warning = options_.stall_warning, .abort = options_.stall_abort});
  // All MPI calls come from one thread, MPI_Init's too: then every level of thread support that MPI may give
  // will do.
  thread_->call([&] {
    start_mpi(argc, argv);
    alarm.note_that_all_came();
    find_peers(make_comm());
  });
  if (!has_peers()) return;
  record_on_signal_ = std::make_unique<RecordOnSignal>(thread_->recorder(), [this] { leave_alone(); });
  thread_->call([this] {
    thread_->set_idle_work([this] { do_idle_work(); });
    thread_->set_last_words([this] { leave_alone(); });
  });
}

// The thread goes on for a moment after the engine is gone.
Runtime::~Runtime() {
  if (thread_) thread_->call([this] { thread_->set_resident(nullptr); });
}

void Runtime::start_mpi(int* argc, char*** argv) {
  int started = 0, finished = 0, level = MPI_THREAD_SINGLE;
  MPI_Initialized(&started);
  MPI_Finalized(&finished);
  if (finished != 0)
    throw FailedPreconditionError("init: MPI has been shut down in this process and cannot be started again");
  if (started == 0) {
    send_chunks_at_once(options_.chunk_bytes);
    check_mpi(MPI_Init_thread(argc, argv, MPI_THREAD_MULTIPLE, &level), "MPI_Init_thread");
    owns_mpi_ = true;
  } else {
    check_mpi(MPI_Query_thread(&level), "MPI_Query_thread");
    if (level < MPI_THREAD_SERIALIZED)
      throw FailedPreconditionError(
          "init: the program started MPI with {}, which leaves MPI to its main thread; kolo calls it from a "
          "thread of its own while the program computes, and needs MPI_Init_thread with "
          "MPI_THREAD_SERIALIZED or MPI_THREAD_MULTIPLE",
          level == MPI_THREAD_SINGLE ? "MPI_THREAD_SINGLE" : "MPI_THREAD_FUNNELED");
  }
  char library[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  check_mpi(MPI_Get_library_version(library, &length), "MPI_Get_library_version");
  mpi_library_.assign(library, length);
  mpi_library_ = mpi_library_.substr(0, mpi_library_.find_first_of(",\n"));
  int ranks = 1;
  check_mpi(MPI_Comm_size(MPI_COMM_WORLD, &ranks), "MPI_Comm_size");
  const auto launcher = find_launcher();
  if (owns_mpi_ && launcher && launcher->size.value_or(1) > 1 && ranks == 1)
    throw FailedPreconditionError(
        "init: {} started {} ranks, but {} sees itself alone; it was built without support "
        "for this launcher (under Slurm: srun --mpi=pmix)",
        launcher->name, *launcher->size, mpi_library_);
}

void Runtime::find_peers(const MpiComm& comm) {
  int rank = 0, size = 1;
  check_mpi(MPI_Comm_rank(comm.get(), &rank), "MPI_Comm_rank");
  check_mpi(MPI_Comm_size(comm.get(), &size), "MPI_Comm_size");
  MPI_Comm sharing = MPI_COMM_NULL;
  check_mpi(MPI_Comm_split_type(comm.get(), MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &sharing),
            "MPI_Comm_split_type");
  const MpiComm host = MpiComm::adopt(sharing);
  int leader = rank;
  check_mpi(MPI_Bcast(&leader, 1, MPI_INT, 0, host.get()), "MPI_Bcast");
  std::vector<int> leaders(size);
  check_mpi(MPI_Allgather(&leader, 1, MPI_INT, leaders.data(), 1, MPI_INT, comm.get()), "MPI_Allgather");
  const std::string hostname = process_.hostname;
  const Topology topology(leaders);
  process_ = locate(rank, topology);
  process_.hostname = hostname;
  const std::string warning = allow_connections(size - process_.local_size);
  if (!warning.empty() && process_.local_rank == 0) log_warning("{}", warning);
  const cpu_set_t mask = affinity_mask();
  process_.core_sharers = count_sharers(host.get(), process_.local_size, mask);

  node_ = connect_node_memory(host.get());
  thread_->set_crowded(process_.core_sharers > CPU_COUNT(&mask));
  world_ = std::make_unique<MpiCommunicator>(MpiComm::duplicate(comm.get()), topology,
                                             options_.allreduce == "nccl" ? "auto" : options_.allreduce,
                                             options_.chunk_bytes, node_);
  mailbox_ = std::make_unique<MpiMailbox>(MpiComm::duplicate(comm.get()));
  thread_->set_watchdog(std::make_unique<Watchdog>(
      *mailbox_, rank, gather_hosts(comm.get(), host.get(), topology, rank, hostname),
      Watchdog::Limits{.warning = options_.stall_warning, .abort = options_.stall_abort}));
  if (size == 1) return;
  hosts_ = thread_->watchdog()->hosts();
  thread_->recorder().set_identity({.rank = rank,
                                    .size = size,
                                    .host = hostname,
                                    .folder = options_.flight_dir,
                                    .job = agree_on_job(comm.get())});
  join_neighbours();
  engine_mailbox_ = std::make_unique<MpiMailbox>(MpiComm::duplicate(comm.get()));
  engine_ = std::make_unique<Engine>(options_, thread_->watchdog()->hosts(), *thread_, *engine_mailbox_,
                                     world_->duplicate(), bucket_allocator());
}

void Runtime::join_neighbours() {
  const int left = (process_.rank + process_.size - 1) % process_.size;
  const int right = (process_.rank + 1) % process_.size;
  lifelines_ = std::make_unique<Lifelines>();
  const Lifelines::Address& own = lifelines_->address();
  Lifelines::Address of_right;
  check_mpi(MPI_Sendrecv(&own, sizeof own, MPI_BYTE, left, 0, &of_right, sizeof of_right, MPI_BYTE, right, 0,
                         mailbox_->comm(), MPI_STATUS_IGNORE),
            "MPI_Sendrecv");
  lifelines_->join(of_right, kJoinNeighbours);
  // A neighbour that came late may take for joined what this rank has given up by then, and the reverse.
  const Lifelines::Held own_ends = lifelines_->held();
  Lifelines::Held by_neighbours;
  const auto tell = [&](const bool& end, int to, bool& other_end, int from) {
    check_mpi(MPI_Sendrecv(&end, sizeof end, MPI_BYTE, to, 0, &other_end, sizeof other_end, MPI_BYTE, from, 0,
                           mailbox_->comm(), MPI_STATUS_IGNORE),
              "MPI_Sendrecv");
  };
  tell(own_ends.left, left, by_neighbours.right, right);
  tell(own_ends.right, right, by_neighbours.left, left);
  lifelines_->agree(by_neighbours);
  lifelines_->watch([this, left, right](Lifelines::Lost lost) {
    if (lost.right) tell_loss(right, lost.with_host);
    if (lost.left) tell_loss(left, lost.with_host);
  });
}

// On the thread of the lifelines: at once, as mpirun, which hears of it at the same time, ends this rank
// soon, maybe before the neighbours of the other ranks of a lost host have seen them go. Of a second one,
// which may be a consequence, only the communication threads hear: the lost rank may have been to pass on the
// first.
void Runtime::tell_loss(int rank, bool with_host) {
  int none = -1;
  if (!lost_rank_.compare_exchange_strong(none, rank)) {
    if (none != rank) second_lost_rank_ = rank;
    thread_->wake();
    return;
  }
  for (int other = 0; other < process_.size; ++other)
    if (other == rank || (with_host && hosts_[other] == hosts_[rank] && other != process_.rank))
      log_error("{}", text_of_loss(other, hosts_[other], last_completed_step()));
  thread_->wake();
}

void Runtime::look_after_neighbours() {
  for (const int rank : {lost_rank_.load(), second_lost_rank_.load()})
    if (rank >= 0) thread_->watchdog()->lost(rank, last_completed_step());
}

void Runtime::do_idle_work() {
  look_after_neighbours();
  if (sigterm_received()) say_goodbye();
  record_on_signal_->poll();
}

void Runtime::tune() {
  thread_->call([this] {
    world_->tune(decide_costs(options_, world_->messages(), world_->topology()), options_.f32_wire);
  });
}

void Runtime::leave(std::function<void()> without_mpi) {
  notice_.reset();
  if (!thread_) {
    engine_->close();
    if (before_end_) before_end_();
    return;
  }
  thread_->call([this] { engine_->begin_close(); });
  thread_->close();
  thread_->call([&, this] {
    engine_->close();
    if (has_peers()) {
      wait_for_others();
      if (at_leave_) at_leave_(!thread_->error());
    }
    if (before_end_) before_end_();
    thread_->set_watchdog(nullptr);
    thread_->set_idle_work(nullptr);
    thread_->set_last_words(nullptr);
    thread_->set_resident(nullptr);
    engine_->release();
    engine_mailbox_.reset();
    mailbox_.reset();
    world_.reset();
    if (owns_mpi_) finalize_mpi(std::move(without_mpi));
  });
  record_on_signal_.reset();
}

// Not an operation: the watchdog would call it stalled, and a rank may compute long after the others have
// left. Nor MPI's barrier, which connects ranks that have nothing else to say to each other.
void Runtime::wait_for_others() {
  auto& watchdog = *thread_->watchdog();
  watchdog.announce_exit();
  lifelines_->say_goodbye();
  const auto begin = std::chrono::steady_clock::now();
  for (;;) {
    look_after_neighbours();
    watchdog.poll(std::chrono::steady_clock::now(), {}, thread_->finished());
    engine_->advance(std::chrono::steady_clock::now());
    const bool all_sent = mailbox_->all_sent() && engine_mailbox_->all_sent();
    if (watchdog.have_all_left() && all_sent) return;
    const auto waited = std::chrono::steady_clock::now() - begin;
    const auto patience = watchdog.is_anyone_gone() ? kLeaveAfterLoss : kLeaveAfterError;
    if ((thread_->error() || watchdog.is_anyone_gone()) && waited > patience) {
      log_error("a collective failed, and not all ranks have left {} s after this one: ending the job",
                patience.count());
      leave_alone();
      MPI_Abort(MPI_COMM_WORLD, 1);
    }
    std::this_thread::sleep_for(std::clamp<std::chrono::steady_clock::duration>(waited / 8, 50us, 5ms));
  }
}

std::shared_ptr<Runtime> current_runtime() {
  MutexLock lock(current().mutex);
  return current().runtime;
}

void set_current_runtime(std::shared_ptr<Runtime> runtime) {
  set_current_engine(runtime ? std::shared_ptr<Engine>(runtime, &runtime->engine()) : nullptr);
  MutexLock lock(current().mutex);
  current().runtime = std::move(runtime);
}

}  // namespace kolo::detail
