// kolorun: starts a program as several ranks. Its parts: options.h, mpirun_command.h (what is started),
// restarts.h (from start to start), job.h (how one runs).
#include <fmt/core.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include <kolo/core/base/error.h>
#include <kolo/launcher/check_build.h>
#include <kolo/launcher/check_network.h>
#include <kolo/launcher/child.h>
#include <kolo/launcher/job_folders.h>
#include <kolo/launcher/job_result.h>
#include <kolo/launcher/job_token.h>
#include <kolo/launcher/machines.h>
#include <kolo/launcher/mpirun_command.h>
#include <kolo/launcher/options.h>
#include <kolo/launcher/output.h>
#include <kolo/launcher/program_search.h>
#include <kolo/launcher/rank_starter.h>
#include <kolo/launcher/requeue.h>
#include <kolo/launcher/restarts.h>
#include <kolo/launcher/srun_command.h>
#include <kolo/launcher/start_wait.h>
#include <kolo/launcher/stop_here.h>

namespace kolo::launcher {
namespace {

void tell(const std::string& sentence) { tell_user("kolorun: " + sentence); }

// mpirun's --wdir, from which it starts a program whose name has a slash; "" without it.
std::string folder_of_ranks(const Options& options) {
  const auto& words = options.mpi_args;
  for (size_t i = 0; i + 1 < words.size(); ++i)
    if (words[i] == "--wdir" || words[i] == "-wdir" || words[i] == "--wd" || words[i] == "-wd")
      return words[i + 1];
  return "";
}

void find_the_program(Options& options, const Surroundings& found) {
  const bool anything_here = options.hosts.empty() || all_ranks_here(options, found);
  const std::string folder = folder_of_ranks(options);
  std::error_code ignored;  // not being able to look is "no"
  if (!folder.empty() && anything_here && !std::filesystem::is_directory(folder, ignored))
    throw NotFoundError("--wdir {}: there is no such folder here", folder);
  if (!folder.empty() && options.program[0].find('/') != std::string::npos) {
    if (anything_here) find_program(std::filesystem::path(folder) / options.program[0]);
    return;
  }
  try {
    options.program[0] = find_program(options.program[0]);
  } catch (const NotFoundError&) {
    if (anything_here) throw;  // else the other hosts may have it
  }
}

// To stdout when it is all that was asked for. A signal that comes meanwhile is for the job, or ends kolorun
// where there is none.
void tell_network(const Options& options, const Surroundings& found, SignalQueue& signals) {
  const std::string report = check_network(options, found, signals);
  if (report.empty()) return options.program.empty() ? signals.give_back() : void();
  for (const std::string& line : options.json ? std::vector{report} : network_lines(report))
    if (options.program.empty() || options.json) fmt::print("{}\n", line);
    else tell(line);
  std::fflush(stdout);
}

void tell_allotment(const Options& options, const std::vector<std::string>& command) {
  if (options.json) return fmt::print("{}", allotment_json(*options.allotment, command));
  fmt::print("{}{}\n", allotment_text(*options.allotment), shell_quote(command));
}

// What a user may not expect.
void tell_of_the_allotment(const Options& options, const Surroundings& found) {
  if (!options.allotment) return;
  if (!options.allotment->also.empty())
    tell(fmt::format("hosts are from {}; {}, which is here as well, is not asked", options.allotment->source,
                     options.allotment->also));
  const bool daemons = options.launcher != Launcher::srun && !all_ranks_here(options, found);
  if (is_of_slurm(options.allotment) && daemons && !options.requeue && !options.stop_before_s)
    tell("in Slurm SIGTERM ends mpirun's daemons before a step is saved; use #SBATCH --signal=USR1@60");
  const AllottedCores cores = allotted_cores(options);
  if (options.bind == Bind::core && cores.least != cores.most)
    tell(fmt::format("ranks have {} to {} cores on different hosts; ranks are not bound", cores.least,
                     cores.most));
}

// One that stopped an earlier start of a job, which the batch system has queued again, has done its work.
void clear_stop_file(const Options& options) {
  if (access(options.stop_file.c_str(), F_OK) != 0) return;
  const bool is_queued_again = options.allotment && options.allotment->restarts > 0;
  std::error_code failed;
  if (is_queued_again && std::filesystem::remove(options.stop_file, failed))
    return tell(fmt::format("removed {}, which has stopped an earlier start of this job", options.stop_file));
  throw InvalidArgumentError("--stop-file {}: it is there already, and would stop the job at once; remove it",
                             options.stop_file);
}

// On this host kolorun looks itself.
void look_for_file_on_other_hosts(Options& options, const Surroundings& found) {
  if (options.stop_file.empty() || all_ranks_here(options, found)) return;
  options.exported.push_back("KOLO_STOP_FILE=" + std::filesystem::absolute(options.stop_file).string());
}

std::vector<std::string> compose(const Options& options, const Surroundings& found) {
  if (options.program.empty()) return compose_network_probe(options, found);
  return starter_of(options.launcher).compose(options, found, false);
}

// Whose launcher lies in PATH. Ranks of another MPI would each see themselves alone, or not start at all.
Mpi find_mpi(const Options& options) {
  const Mpi& own = own_mpi();
  if (options.launcher == Launcher::srun) return own;
  const std::string program = starter_of(options.launcher).program(), path = find_in_path(program);
  if (path.empty() && (options.dry_run || options.show_allotment)) return own;
  if (path.empty() && own.has_hydra())
    throw NotFoundError("{} is not in PATH; install {} or add its folder to PATH", program, own.text());
  if (path.empty())
    throw NotFoundError(
        "mpirun is not in PATH; install Open MPI (Debian: openmpi-bin) or add its folder to PATH");
  const Mpi there = parse_mpi(ask_program({path, "--version"}).value_or(""));
  if (!can_start(there, own))
    throw FailedPreconditionError("{} is of {}, but kolo was built with {}", path, there.text(), own.text());
  return there == Mpi() ? own : there;
}

int launch(Options options, Surroundings found, SignalQueue& signals) {
  if (!all_ranks_here(options, found)) JobFolders::remove_left();
  if (!options.program.empty()) find_the_program(options, found);
  if (!options.stop_file.empty()) clear_stop_file(options);
  if (!options.elastic)
    if (const auto code = wait_for_start(options, found, signals, tell))
      return requeue_unless_ended(options, {}, signals, *code);
  // Some of an elastic job's hosts may not be there: they are looked at first.
  if (!options.elastic && needs_machines(options, found))
    found.machines = find_machines(options, found, signals);
  if (options.check_network) tell_network(options, found, signals);
  std::optional<JobToken> token;
  if (JobToken::is_wanted(options, found)) token.emplace();
  if (options.verbose && !options.program.empty()) tell(shell_quote(compose(options, found)));
  return options.program.empty() ? 0 : run_with_restarts(options, found, signals);
}

bool starts_nothing(const Options& options) {
  return options.help || options.version || options.check_build || options.stop_here || options.dry_run ||
         options.show_allotment;
}

int run(Options options, SignalQueue& signals) {
  if (starts_nothing(options)) signals.give_back();
  if (options.help) return fmt::print("{}", help_text()), 0;
  if (options.version) return fmt::print("kolorun {}\n", KOLO_VERSION), 0;
  if (options.check_build) return fmt::print("{}", check_build_text()), 0;
  if (options.stop_here) return stop_ranks_here(options.wait_s);
  // For the ranks, and for find_surroundings, which hands it to other hosts.
  setenv("KOLO_STOP_GRACE_S", fmt::format("{:g}", options.stop_grace_s).c_str(), 1);
  if (options.stopped_exit_code != 0)
    setenv("KOLO_STOPPED_EXIT_CODE", std::to_string(options.stopped_exit_code).c_str(), 1);
  if (!options.stop_when.empty()) setenv("KOLO_STOP_WHEN", options.stop_when.c_str(), 1);
  Surroundings found = find_surroundings();
  look_for_file_on_other_hosts(options, found);
  options.launcher = choose_launcher(options, ask_program, found.mpi);
  if (options.program.empty() && options.launcher == Launcher::srun)
    options.launcher = launcher_of(found.mpi);
  found.mpi = find_mpi(options);
  // Composed here once so that what is wrong with the options is told before anything starts.
  const std::vector<std::string> command = compose(options, found);
  if (options.show_allotment) return tell_allotment(options, command), 0;
  tell_of_the_allotment(options, found);
  if (!options.dry_run) return launch(options, found, signals);
  fmt::print("{}\n", shell_quote(command));
  return 0;
}

int guarded_main(int argc, char** argv) {
  fill_standard_descriptors();
  learn_how_children_end();
  // A request to stop may come while kolorun still asks the batch system what it may use.
  SignalQueue signals;
  Options options;
  try {
    options = parse_command_line(argc, argv, own_environment(), ask_program);
  } catch (const Error& error) {
    tell(error.what());
    return kBadCommandLine;
  }
  try {
    return run(options, signals);
  } catch (const InvalidArgumentError& error) {  // an option that does not suit this machine or environment
    tell(error.what());
    return kBadCommandLine;
  } catch (const std::exception& error) {
    tell(error.what());
    return 1;
  }
}

}  // namespace
}  // namespace kolo::launcher

int main(int argc, char** argv) { return kolo::launcher::guarded_main(argc, argv); }
