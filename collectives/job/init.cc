#include <kolo/collectives/job/init.h>

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <memory>
#include <set>
#include <thread>
#include <utility>

#include <kolo/collectives/job/mpi_group.h>
#include <kolo/collectives/job/mpi_interop.h>
#include <kolo/collectives/job/runtime.h>
#include <kolo/collectives/job/settings.h>
#include <kolo/collectives/job/timeline_session.h>
#include <kolo/core/base/env.h>
#include <kolo/core/base/error.h>
#include <kolo/core/base/exit_code.h>
#include <kolo/core/base/launcher.h>
#include <kolo/core/base/log.h>
#include <kolo/core/base/process.h>
#include <kolo/core/base/requeue.h>
#include <kolo/core/base/stop_signal.h>
#include <kolo/core/base/text.h>
#include <kolo/core/runtime/compare_ranks.h>

namespace kolo {
namespace {

using detail::MpiComm;
using detail::Runtime;

// Until mpirun has seen by itself that a rank is gone: its exit code is then the job's.
constexpr auto kMpirunSeesLoss = std::chrono::milliseconds(300);

void end_job(int code) {
  std::fflush(nullptr);
  const auto runtime = detail::current_runtime();
  if (runtime && !runtime->is_own()) return;
  tell_last_step(last_completed_step());
  if (runtime && runtime->has_peers()) {
    runtime->say_goodbye();
    if (runtime->thread().watchdog()->is_anyone_gone()) std::this_thread::sleep_for(kMpirunSeesLoss);
  }
  if (process().size > 1 && detail::mpi_is_running()) MPI_Abort(MPI_COMM_WORLD, code);
}

// The other ranks would wait for one that ends by an error: they are ended with it.
[[noreturn]] void on_terminate() {
  const auto error = std::current_exception();
  const std::string text = error ? described(error) : "ended by std::terminate";
  const std::string line = fmt::format("rank {} on {}: {}\n", process().rank, process().hostname, text);
  std::fflush(stdout);
  std::fputs(line.c_str(), stderr);
  end_job(1);
  std::_Exit(1);
}

// KOLO_STOPPED_EXIT_CODE; 0 where it is unset, or does not parse.
int code_of_stops() {
  try {
    return detail::stopped_exit_code();
  } catch (const std::exception&) {
    return 0;
  }
}

pid_t job_starts_again = 0;  // the process that has asked for it, which then waits for its end

// Under srun or mpirun without kolorun, by rank 0. All ranks have left, so all is saved; none has ended yet,
// which a launcher may take for a reason to kill the others.
void ask_for_requeue() {
  const std::int64_t step = last_completed_step();
  detail::StoppedAt where;
  if (step >= 0) where.step = step;
  if (step >= 0 && detail::planned_steps() > 0) where.of = detail::planned_steps();
  const auto say = [](const std::string& line) { std::fprintf(stderr, "%s\n", line.c_str()); };
  if (detail::ask_for_requeue(detail::find_batch_job(), "kolo", where, say)) job_starts_again = getpid();
}

// without_mpi: Runtime::leave()'s.
void take_down(const std::shared_ptr<Runtime>& runtime, std::function<void()> without_mpi = nullptr) {
  detail::set_current_runtime(nullptr);
  detail::set_initialised(false);
  runtime->leave(std::move(without_mpi));
  set_world_group(nullptr);
  set_log_prefix("");
}

void end_well(const std::shared_ptr<Runtime>& runtime, std::function<void()> without_mpi = nullptr) {
  if (runtime->process().rank == 0 && detail::was_training_stopped() && detail::wants_requeue())
    runtime->before_end(ask_for_requeue);
  take_down(runtime, std::move(without_mpi));
  set_process({});
}

// All ranks of a stopped training return exit_code(): none has failed, and MPI_Abort would kill those that
// still leave. A batch system starts a job again that ends with this code, so no failure may.
void on_process_exit(int code, void*) {
  const auto runtime = detail::current_runtime();
  if (!runtime && code != 0 && job_starts_again == getpid()) detail::wait_to_be_ended(code);
  if (!runtime || !runtime->is_own()) return;
  if (code != 0 && code != code_of_stops()) {
    end_job(code);
    return;
  }
  if (code != 0 && code != exit_code()) {
    std::fprintf(stderr,
                 "rank %d on %s: exit code %d means a stop, and nobody asked for one: the job fails\n",
                 process().rank, process().hostname.c_str(), code);
    end_job(1);
    std::_Exit(1);
  }
  try {
    end_well(runtime, [code] {
      std::fflush(nullptr);
      if (job_starts_again == getpid()) detail::wait_to_be_ended(code);
      std::_Exit(code);
    });
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rank %d on %s: shutdown failed: %s\n", process().rank, process().hostname.c_str(),
                 error.what());
    end_job(1);
    std::_Exit(1);
  }
  if (job_starts_again == getpid()) detail::wait_to_be_ended(code);
}

void install_handlers_once() {
  static const bool installed = [] {
    std::set_terminate(on_terminate);
    return on_exit(on_process_exit, nullptr) == 0;  // atexit would not tell the code
  }();
  if (!installed) throw InternalError("init: the exit handler could not be registered");
}

struct Parsed {
  EngineOptions options;
  std::string error;
  Code code = Code::unknown;
};

// Kept for when the ranks can tell each other: one that left here would have the others wait in MPI_Init.
Parsed parse_environment() {
  Parsed parsed;
  try {
    parsed.options = EngineOptions::from_environment();
    detail::StopNotice::plan_of_environment();
    detail::stopped_exit_code();  // at the end an error would take the place of the stop
  } catch (const Error& error) {
    parsed.error = error.what();
    parsed.code = error.code();
  }
  return parsed;
}

void compare_options(const Runtime& runtime) {
  detail::NamedTexts own = {
      {"kolo", KOLO_VERSION}, {"MPI library", runtime.mpi_library()}, {"devices", "cpu"}};
  for (auto& option : shared_options(runtime.options())) own.push_back(std::move(option));
  if (const auto difference = detail::compare_ranks(world_group(), own))
    throw FailedPreconditionError("init: the ranks differ in what they must share:{}",
                                  differences_table(difference->all));
}

#ifdef OPEN_MPI
constexpr const char *kPmiOfMpi = "PMIx", *kMpi = "Open MPI", *kOptionOfSrun = "pmix";
bool is_served_by_pmi() { return false; }  // its variable, PMIX_RANK, is a launcher's of its own
#else
constexpr const char *kPmiOfMpi = "PMI", *kMpi = "MPICH", *kOptionOfSrun = "pmi2";
bool is_served_by_pmi() { return env_string("PMI_RANK") || env_string("PMI_FD"); }
#endif

// MPI_Init would abort with a page of its own. A lone process of a batch script is no step.
void refuse_srun_without_pmi(const detail::Launcher& launcher) {
  if (launcher.name != "Slurm" || launcher.size.value_or(1) < 2 || is_served_by_pmi()) return;
  throw FailedPreconditionError("srun started {} tasks without {}, which {} needs: srun --mpi={} …",
                                *launcher.size, kPmiOfMpi, kMpi, kOptionOfSrun);
}

// In a PID namespace of its own, as under `kolorun -- unshare -p` or in a container for each rank, a rank
// reads its peers' memory by process ids that mean nothing there: Open MPI's ranks end by SIGSEGV. kolo's own
// shared memory needs no process ids.
void leave_shared_memory_of_mpi() {
  const auto of_launcher = env_string(detail::kNamespaceOfLauncher);
  if (!of_launcher || of_launcher->empty() || *of_launcher == detail::pid_namespace()) return;
  constexpr const char* kTransports = "OMPI_MCA_btl";
  const auto chosen =
      env_string(kTransports);  // by the user, if it is not what kolorun gives ranks of one machine
  if (!chosen || *chosen == detail::kTransportsOfOneMachine) setenv(kTransports, "tcp,self", 1);
}

void start(Parsed parsed, int* argc, char*** argv, std::function<MpiComm()> make_comm) {
  install_handlers_once();
  const auto launcher = detail::find_launcher();
  const bool launched = launcher.has_value();
  if (launched) {
    detail::refuse_child_of_rank();
    refuse_srun_without_pmi(*launcher);
    detail::mark_rank_process();
    leave_shared_memory_of_mpi();
  }
  // A launcher reads a pipe: printf would keep lines back until there are 4 KiB of them.
  if (launched) std::setvbuf(stdout, nullptr, _IOLBF, 0);
  const bool alone = !make_comm && !launched && !detail::mpi_is_running();
  if (!make_comm) make_comm = [] { return MpiComm::duplicate(MPI_COMM_WORLD); };
  const auto runtime = alone ? std::make_shared<Runtime>(parsed.options)
                             : std::make_shared<Runtime>(parsed.options, argc, argv, make_comm);
  const auto& info = runtime->process();
  set_process(info);
  set_log_level(parsed.options.log_level);
  if (runtime->has_peers()) {
    set_log_prefix(fmt::format("[{}/{} {}]", info.rank, info.size, info.hostname));
    set_world_group(std::make_unique<detail::MpiGroup>(runtime));
  }
  detail::set_current_runtime(runtime);
  detail::set_initialised(true);
  try {
    throw_if_any_failed(world_group(), parsed.code, parsed.error);
    compare_options(*runtime);
    if (runtime->has_peers()) runtime->tune();
    if (runtime->has_peers() && !parsed.options.timeline.empty())
      detail::begin_timeline(*runtime, parsed.options.timeline);
  } catch (const Error&) {
    take_down(runtime);
    throw;
  }
  if (info.local_rank == 0) runtime->look_for_notice();
  if (info.rank != 0) return;
  for (const auto& line : unknown_kolo_variables(known_variables())) log_warning("{}", line);
}

ProcessInfo initialised_process() {
  const auto runtime = detail::current_runtime();
  if (!runtime) throw FailedPreconditionError("kolo is not initialised; call kolo::init() first");
  return runtime->process();
}

MpiComm comm_of(std::span<const int> ranks) {
  int size = 1;
  detail::check_mpi(MPI_Comm_size(MPI_COMM_WORLD, &size), "MPI_Comm_size");
  std::set<int> seen;
  for (const int rank : ranks)
    if (rank < 0 || rank >= size || !seen.insert(rank).second)
      throw InvalidArgumentError("init: rank {} of the list {}; there are ranks 0 to {}", rank,
                                 rank < 0 || rank >= size ? "does not exist" : "stands there twice",
                                 size - 1);
  MPI_Group all = MPI_GROUP_NULL, chosen = MPI_GROUP_NULL;
  MPI_Comm comm = MPI_COMM_NULL;
  detail::check_mpi(MPI_Comm_group(MPI_COMM_WORLD, &all), "MPI_Comm_group");
  detail::check_mpi(MPI_Group_incl(all, static_cast<int>(ranks.size()), ranks.data(), &chosen),
                    "MPI_Group_incl");
  detail::check_mpi(MPI_Comm_create(MPI_COMM_WORLD, chosen, &comm), "MPI_Comm_create");
  MPI_Group_free(&chosen);
  MPI_Group_free(&all);
  return comm == MPI_COMM_NULL ? MpiComm::duplicate(MPI_COMM_SELF) : MpiComm::adopt(comm);
}

// A forked child has the rank's runtime, and none of its threads.
bool is_started() {
  if (!detail::current_runtime()) return false;
  if (process().size > 1) detail::refuse_child_of_rank();
  return true;
}

}  // namespace

void init(int* argc, char*** argv) {
  if (!is_started()) start(parse_environment(), argc, argv, nullptr);
}

void init(int* argc, char*** argv, const EngineOptions& options) {
  if (!is_started()) start({.options = options, .error = {}}, argc, argv, nullptr);
}

void init(MPI_Comm comm) {
  if (is_started()) return;
  if (!detail::mpi_is_running())
    throw FailedPreconditionError("init with a communicator: MPI is not running; call MPI_Init_thread first");
  start(parse_environment(), nullptr, nullptr, [comm] { return MpiComm::duplicate(comm); });
}

void init(std::span<const int> ranks) {
  if (is_started()) return;
  start(parse_environment(), nullptr, nullptr, [ranks] { return comm_of(ranks); });
}

void shutdown() {
  if (const auto runtime = detail::current_runtime()) end_well(runtime);
}

int rank() { return initialised_process().rank; }
int size() { return initialised_process().size; }
int local_rank() { return initialised_process().local_rank; }
int local_size() { return initialised_process().local_size; }
int cross_rank() { return initialised_process().cross_rank; }
int cross_size() { return initialised_process().cross_size; }
int node_count() { return initialised_process().node_count; }
bool is_homogeneous() { return initialised_process().homogeneous; }
std::string hostname() { return initialised_process().hostname; }

EngineOptions engine_options() {
  initialised_process();
  return detail::current_runtime()->options();
}

}  // namespace kolo
