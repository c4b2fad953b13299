#include <kolo/launcher/srun_command.h>

#include <algorithm>
#include <numeric>

#include <fmt/core.h>

#include <kolo/core/base/error.h>
#include <kolo/core/base/text.h>
#include <kolo/launcher/program_search.h>

namespace kolo::launcher {
namespace {

// How srun and the ranks talk to each other.
const char* pmi_of(const Mpi& mpi) { return mpi.has_hydra() ? "pmi2" : "pmix"; }

bool is_whole_job(const Options& options) {
  return options.hosts == options.allotment->hosts && options.ranks == total_slots(options.hosts);
}

bool has_all_hosts(const Options& options) {
  const auto& allotted = options.allotment->hosts;
  return std::all_of(options.hosts.begin(), options.hosts.end(),
                     [&](const Host& host) { return contains_host(allotted, host.name); });
}

// Why srun cannot start this job; "" if it can.
std::string obstacle(const Options& options, const Ask& ask, const Mpi& mpi) {
  if (!is_of_slurm(options.allotment)) return "this is no job of Slurm";
  if (!options.mpi_args.empty()) return "--mpi-args are mpirun's";
  if (!options.cluster.empty()) return "--cluster is for mpirun";
  if (options.hosts.empty() || !has_all_hosts(options)) return "not all hosts belong to this job of Slurm";
  if (options.allotment->groups > 1 && (options.elastic || !is_whole_job(options)))
    return "of a heterogeneous job it starts all ranks or none";
  const auto known = ask({"srun", "--mpi=list"});
  if (!known || known->find(pmi_of(mpi)) == std::string::npos)
    return fmt::format("srun --mpi=list does not name {}, which {} needs", pmi_of(mpi),
                       mpi.has_hydra() ? mpi.text() : "Open MPI");
  return "";
}

// Each host once for each of its ranks: srun then gives the ranks out in this order.
std::string hosts_of_ranks(const Options& options, const char* between) {
  const std::vector<int> counts = ranks_per_host(options.hosts, options.ranks);
  std::string list;
  for (size_t host = 0; host < counts.size(); ++host)
    for (int i = 0; i < counts[host]; ++i)
      list += fmt::format("{}{}", list.empty() ? "" : between, options.hosts[host].name);
  return list;
}

}  // namespace

Launcher launcher_of(const Mpi& mpi) { return mpi.has_hydra() ? Launcher::hydra : Launcher::mpirun; }

Launcher choose_launcher(const Options& options, const Ask& ask, const Mpi& mpi) {
  const Launcher of_mpi = launcher_of(mpi);
  const char* const its_name = mpi.has_hydra() ? "hydra" : "mpirun";
  if (options.launcher == of_mpi) return of_mpi;
  if (options.launcher == Launcher::mpirun || options.launcher == Launcher::hydra)
    throw InvalidArgumentError("--launcher {} starts no ranks of {}, which kolo was built with; use {}",
                               mpi.has_hydra() ? "mpirun" : "hydra", mpi.text(), its_name);
  const std::string why_not = obstacle(options, ask, mpi);
  if (why_not.empty()) return Launcher::srun;
  if (options.launcher == Launcher::srun)
    throw InvalidArgumentError("--launcher srun cannot start the job: {}; use --launcher {}", why_not,
                               its_name);
  return of_mpi;
}

bool starts_by_slurm(const Options& options) {
  if (options.launcher == Launcher::srun) return true;
  return is_of_slurm(options.allotment) && options.allotment->groups == 1 && has_all_hosts(options) &&
         std::find(options.mpi_args.begin(), options.mpi_args.end(), "plm") == options.mpi_args.end();
}

std::string host_lines_of_srun(const Options& options, const Surroundings&) {
  return hosts_of_ranks(options, "\n") + "\n";
}

std::vector<std::string> compose_srun(const Options& options, const Surroundings& found, bool tagged) {
  std::vector<std::string> command = {"env"};
  for (const auto& [name, entry] : exported_variables(options, found))
    if (entry.find('=') != std::string::npos) command.push_back(entry);
  command.insert(command.end(), {"srun", std::string("--mpi=").append(pmi_of(found.mpi)), "--export=ALL"});
  // A rank that has stopped with a code of its own is no reason to end the others, which still leave.
  command.push_back(options.stopped_exit_code == 0 ? "--kill-on-bad-exit=1" : "--kill-on-bad-exit=0");
  command.push_back(options.hand_on_stdin ? "--input=0" : "--input=none");
  if (tagged) command.emplace_back("--label");
  const auto& variables = found.variables;
  const bool is_in_step = std::find(variables.begin(), variables.end(), "SLURM_STEP_ID") != variables.end();
  // The step of the last start is over for Slurm when a lost host has said so, and each rank has ended: one
  // that ignores SIGTERM lives on for the site's KillWait, half a minute as a rule.
  if (is_in_step || options.elastic || options.restarts > 0) command.emplace_back("--overlap");
  if (options.bind == Bind::none) command.emplace_back("--cpu-bind=none");
  if (options.allotment->groups > 1) {
    command.push_back(fmt::format("--het-group=0-{}", options.allotment->groups - 1));
  } else {
    const std::string& list = options.host_list;
    command.insert(command.end(),
                   {"-n", std::to_string(options.ranks), "-w",
                    list.empty() ? hosts_of_ranks(options, ",") : list, "--distribution=arbitrary"});
    const std::vector<int>& all = options.allotment->cores;
    if (options.ranks > std::accumulate(all.begin(), all.end(), 0) && !all.empty())
      command.emplace_back("--overcommit");
    if (const auto cores = allotted_cores(options).of_each_rank)
      command.insert(command.end(), {"-c", std::to_string(*cores * options.allotment->cpus_per_core)});
  }
  command.insert(command.end(), options.program.begin(), options.program.end());
  return command;
}

std::pair<int, size_t> find_label(std::string_view line) {
  const size_t first = line.find_first_not_of(' ');
  const size_t colon = line.find(": ");
  if (first == std::string_view::npos || colon == std::string_view::npos || colon <= first) return {-1, 0};
  const auto rank = parse_int64(line.substr(first, colon - first));
  constexpr std::int64_t kMostRanks = 1 << 20;
  if (!rank || *rank < 0 || *rank > kMostRanks) return {-1, 0};
  return {static_cast<int>(*rank), colon + 2};
}

}  // namespace kolo::launcher
