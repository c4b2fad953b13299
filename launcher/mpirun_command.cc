#include <kolo/launcher/mpirun_command.h>

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <initializer_list>
#include <limits>
#include <map>

#include <fmt/core.h>

#include <kolo/core/base/batch_job.h>
#include <kolo/core/base/count_of.h>
#include <kolo/core/base/error.h>
#include <kolo/core/base/launcher.h>
#include <kolo/core/base/process.h>
#include <kolo/launcher/banner.h>
#include <kolo/launcher/program_search.h>

namespace kolo::launcher {
namespace {

bool contains(const std::vector<std::string>& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

bool contains_any(const std::vector<std::string>& words, std::initializer_list<std::string_view> wanted) {
  return std::any_of(wanted.begin(), wanted.end(),
                     [&](std::string_view word) { return contains(words, word); });
}

bool starts_with(std::string_view text, std::string_view start) {
  return text.substr(0, start.size()) == start;
}

// Of Slurm and others that give a job some of a host's cores; a hostfile alone says nothing of cores.
bool is_batch_job(const Options& options) {
  return options.allotment && options.allotment->system != detail::kMpiOperator;
}

// A setting of mpirun's own: it names its daemons' network, from Open MPI 5 on, PRRTE.
void add_own_setting(std::vector<std::string>& command, const Surroundings& found, const std::string& name,
                     const std::string& value) {
  command.insert(command.end(), {found.mpi.has_prte() ? "--prtemca" : "--mca", name, value});
}

// The most ranks that share one machine's cores.
int ranks_per_machine(const Options& options, const Surroundings& found) {
  if (options.hosts.empty()) return options.ranks;
  const std::vector<int> counts = ranks_per_host(options.hosts, options.ranks);
  std::map<int, int> on_machine;
  for (size_t host = 0; host < counts.size(); ++host) {
    const bool here = is_this_machine(options.hosts[host].name, found.hostname);
    const int own = here ? -1 : static_cast<int>(host);
    on_machine[found.machines.empty() ? own : found.machines[host]] += counts[host];
  }
  int most = 1;
  for (const auto& [machine, count] : on_machine) most = std::max(most, count);
  return most;
}

bool hosts_share_a_machine(const Surroundings& found) {
  std::vector<int> machines = found.machines;
  std::sort(machines.begin(), machines.end());
  return std::adjacent_find(machines.begin(), machines.end()) != machines.end();
}

}  // namespace

bool args_bind(const Options& options) {
  return contains_any(options.mpi_args, {"--bind-to", "-bind-to", "--map-by", "-map-by", "--rankfile", "-rf",
                                         "--cpu-set", "--cpu-list"});
}

std::optional<int> cores_to_bind(const Options& options, const Surroundings& found) {
  const int local_ranks = ranks_per_machine(options, found), cores = found.cores.count;
  const bool here = all_ranks_here(options, found);
  if (options.bind == Bind::core && here && local_ranks > cores)
    throw InvalidArgumentError("--bind core needs a core for each rank: {} ranks, {}; use --bind none",
                               local_ranks, count_of(cores, "core"));
  // mpirun counts cores from the machine's first, not from the first of an affinity mask: bound ranks would
  // leave the mask.
  const bool may_bind = local_ranks <= cores && !found.cores.restricted && !hosts_share_a_machine(found);
  const bool batch = is_batch_job(options);
  const AllottedCores allotted = allotted_cores(options);
  if (options.bind == Bind::none || (options.bind == Bind::automatic && (batch || !may_bind)) ||
      allotted.least != allotted.most)
    return std::nullopt;
  if (batch) return allotted.of_each_rank.value_or(0);
  return allotted.of_each_rank.value_or(std::max(1, cores / local_ranks));
}

namespace {

void add_binding(std::vector<std::string>& command, const Options& options, const Surroundings& found) {
  if (args_bind(options)) {  // their places, and the binding that --bind asks for
    if (options.bind != Bind::automatic && !contains(options.mpi_args, "--bind-to") &&
        !contains(options.mpi_args, "-bind-to"))
      command.insert(command.end(), {"--bind-to", options.bind == Bind::none ? "none" : "core"});
    return;
  }
  const auto cores = cores_to_bind(options, found);
  if (!cores) {
    command.insert(command.end(), {"--bind-to", "none"});
    return;
  }
  if (*cores > 0) command.insert(command.end(), {"--map-by", "slot:PE=" + std::to_string(*cores)});
  command.insert(command.end(), {"--bind-to", "core"});
}

// A link that goes down would leave mpirun waiting for minutes; with these it notices after 3 to 4 seconds. A
// shorter break is survived.
void add_keepalive(std::vector<std::string>& command, const Options& options, const Surroundings& found) {
  for (const char* setting : {"time 1", "intvl 1", "probes 3"}) {
    const std::string text = setting;
    const size_t space = text.find(' ');
    add_own_setting(command, found, "oob_tcp_keepalive_" + text.substr(0, space), text.substr(space + 1));
  }
  const std::string agent = found.mpi.has_prte() ? "plm_ssh" : "plm_rsh";
  const std::string variable = (found.mpi.has_prte() ? "PRTE_MCA_" : "OMPI_MCA_") + agent;
  const bool own_agent = contains_any(options.mpi_args, {agent + "_agent", agent + "_args"}) ||
                         contains(found.variables, variable + "_agent") ||
                         contains(found.variables, variable + "_args");
  if (own_agent) return;
  // BatchMode: a question for a password would wait for ever. ssh gives up after mpirun's own network, which
  // names the host that is lost, where ssh may say nothing at all.
  add_own_setting(command, found, agent + "_args",
                  "-o BatchMode=yes -o ConnectTimeout=10 -o ServerAliveInterval=2 -o ServerAliveCountMax=3");
}

// When a rank or a host is lost mpirun gives the other ranks a second to end, one host after the other. Those
// of an elastic job have told their step.
void add_quick_end(std::vector<std::string>& command, const Options& options, const Surroundings& found) {
  if (!options.elastic || contains(options.mpi_args, "odls_base_sigkill_timeout")) return;
  add_own_setting(command, found, "odls_base_sigkill_timeout", "0");
}

// For Slurm the step with the daemons of an elastic job's last start is over when a lost host has said so.
void add_overlapping_steps(std::vector<std::string>& command, const Options& options,
                           const Surroundings& found) {
  if (!options.elastic || !is_of_slurm(options.allotment) || contains(options.mpi_args, "plm_slurm_args") ||
      contains(found.variables, "OMPI_MCA_plm_slurm_args"))
    return;
  add_own_setting(command, found, "plm_slurm_args", "--overlap");
}

// Shared memory is all that ranks of one machine need. Others listen: tcp on every address, ofi on the
// machine's own.
void add_shared_memory_alone(std::vector<std::string>& command, const Options& options,
                             const Surroundings& found) {
  const bool chosen = contains_any(options.mpi_args, {"btl", "pml"}) ||
                      contains(found.variables, "OMPI_MCA_btl") || contains(found.variables, "OMPI_MCA_pml");
  if (!chosen)
    command.insert(command.end(), {"--mca", "pml", "ob1", "--mca", "btl", detail::kTransportsOfOneMachine});
}

// 0: OMP_NUM_THREADS is left as it is. Unset, init() counts the cores that each rank may run on.
int threads_of_a_rank(const Options& options, const Surroundings& found, int local_ranks) {
  // PBS itself sets it, to the cores of a chunk, in which several ranks may run.
  const bool set_by_pbs =
      options.allotment && options.allotment->system == "PBS" && options.allotment->cores_per_rank;
  if (contains(found.variables, "OMP_NUM_THREADS") && !set_by_pbs) return 0;
  const AllottedCores allotted = allotted_cores(options);
  if (allotted.most > 0) return allotted.of_each_rank.value_or(0);
  return std::max(1, found.cores.count / local_ranks);
}

}  // namespace

std::map<std::string, std::string> exported_variables(const Options& options, const Surroundings& found) {
  const int local_ranks = ranks_per_machine(options, found);
  std::map<std::string, std::string> exports;  // name → what follows -x
  if (!all_ranks_here(options, found)) {
    for (const std::string& name : found.variables)
      if (starts_with(name, "KOLO_") || starts_with(name, "HOROVOD_") || starts_with(name, "OMP_") ||
          name == "PATH" || name == "LD_LIBRARY_PATH" || name == "PYTHONPATH" ||
          contains(detail::batch_job_variables(), name))
        exports[name] = name;
  }
  exports["KOLO_LAUNCHER"] = "KOLO_LAUNCHER=kolorun";
  const detail::BatchJob job = batch_job_of(options.allotment);
  if (job.system == detail::kMpiOperator && !job.job.empty())
    exports[detail::kMpiJobVariable] = fmt::format("{}={}", detail::kMpiJobVariable, job.job);
  if (found.terminal) exports["KOLO_TERMINAL"] = "KOLO_TERMINAL=1";
  if (const int threads = threads_of_a_rank(options, found, local_ranks); threads > 0)
    exports["OMP_NUM_THREADS"] = "OMP_NUM_THREADS=" + std::to_string(threads);
  for (const std::string& entry : options.exported) {
    const std::string name = entry.substr(0, entry.find('='));
    if (name == entry && !contains(found.variables, name))
      throw InvalidArgumentError("-x {}: no such variable is set; set it, or give its value as in -x {}=1",
                                 name, name);
    exports[name] = entry;
  }
  return exports;
}

namespace {

// mpirun takes an own name of this machine that it cannot resolve, such as localhost.localdomain, for another
// machine.
std::vector<Host> as_mpirun_knows_them(std::vector<Host> hosts, const std::string& hostname) {
  for (Host& host : hosts) {
    const bool is_known = host.name == "localhost" || host.name == "127.0.0.1" || host.name == "::1" ||
                          is_same_host(host.name, hostname);
    if (!is_known && is_this_machine(host.name, hostname)) host.name = hostname;
  }
  return hosts;
}

std::vector<std::string> addresses_of_tasks(const Options& options, const Surroundings& found) {
  if (all_ranks_here(options, found)) return free_local_addresses(options.ranks);
  if (options.hosts.empty())
    throw InvalidArgumentError(
        "--cluster needs to know which rank runs on which host; name the hosts by --host or --hostfile");
  return addresses_on(options.hosts, options.ranks, options.cluster_port);
}

}  // namespace

Surroundings find_surroundings() {
  Surroundings found;
  found.mpi = own_mpi();
  found.cores = find_cores();
  found.hostname = process().hostname;
  found.root = geteuid() == 0;
  found.terminal = isatty(STDOUT_FILENO) == 1;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    if (text != "OMP_NUM_THREADS=")  // as a batch script leaves it that was allotted no number of cores
      found.variables.emplace_back(text.substr(0, text.find('=')));
  }
  return found;
}

AllottedCores allotted_cores(const Options& options) {
  AllottedCores cores;
  if (!options.allotment || options.hosts.empty()) return cores;
  const std::vector<int> counts = ranks_per_host(options.hosts, options.ranks);
  const std::vector<int> each = cores_of_ranks(*options.allotment, options.hosts, options.ranks);
  cores.least = std::numeric_limits<int>::max();
  for (size_t host = 0; host < counts.size(); ++host) {
    if (counts[host] == 0) continue;
    cores.least = std::min(cores.least, each[host]);
    cores.most = std::max(cores.most, each[host]);
  }
  if (cores.least == cores.most && cores.most > 0) cores.of_each_rank = cores.most;
  return cores;
}

bool all_ranks_here(const Options& options, const Surroundings& found) {
  if (mpi_args_name_hosts(options)) return false;
  return std::all_of(options.hosts.begin(), options.hosts.end(),
                     [&](const Host& host) { return is_this_machine(host.name, found.hostname); });
}

std::vector<std::string> state_notes_of_mpirun(const Options& options, const Surroundings& found) {
  const bool is_asked = contains(options.mpi_args, kStateNotes) ||
                        contains(found.variables, std::string("OMPI_MCA_") + kStateNotes);
  if (is_asked || found.mpi.kind != MpiKind::open_mpi || found.mpi.has_prte()) return {};
  return {"--mca", kStateNotes, "1"};
}

std::string host_lines_of_mpirun(const Options& options, const Surroundings& found) {
  std::string lines;
  for (const Host& host : as_mpirun_knows_them(options.hosts, found.hostname))
    lines += fmt::format("{} slots={}\n", host.name, host.slots);
  return lines;
}

std::vector<std::string> compose_mpirun(const Options& options, const Surroundings& found, bool tagged) {
  const int local_ranks = ranks_per_machine(options, found);
  std::vector<std::string> command = {"mpirun"};
  if (found.root) command.push_back("--allow-run-as-root");
  // Also lets ranks that wait give their core to those that work.
  if (local_ranks > found.cores.count && !is_batch_job(options) &&
      !contains(options.mpi_args, "--oversubscribe")) {
    if (found.mpi.has_prte()) command.insert(command.end(), {"--map-by", ":OVERSUBSCRIBE"});
    else command.emplace_back("--oversubscribe");
  }
  const std::vector<Host> hosts = as_mpirun_knows_them(options.hosts, found.hostname);
  const bool as_given =
      hosts == options.hosts ||
      std::any_of(hosts.begin(), hosts.end(), [](const Host& host) { return host.hostfile_alone; });
  if (!options.host_list.empty()) command.insert(command.end(), {"--hostfile", options.host_list});
  else if (!options.hostfile.empty() && as_given)
    command.insert(command.end(), {"--hostfile", options.hostfile});
  else if (!hosts.empty()) command.insert(command.end(), {"--host", format_hosts(hosts)});
  // Open MPI's own modules for Slurm know the first component of a heterogeneous job alone.
  if (options.allotment && options.allotment->groups > 1)
    for (const char* module : {"ras", "plm"}) add_own_setting(command, found, module, "^slurm");
  add_binding(command, options, found);
  if (tagged && found.mpi.has_prte()) command.insert(command.end(), {"--output", "tag"});
  else if (tagged) command.emplace_back("--tag-output");
  if (all_ranks_here(options, found)) add_shared_memory_alone(command, options, found);
  else add_keepalive(command, options, found);
  add_quick_end(command, options, found);
  add_overlapping_steps(command, options, found);
  for (const auto& [name, entry] : exported_variables(options, found))
    command.insert(command.end(), {"-x", entry});
  command.insert(command.end(), options.mpi_args.begin(), options.mpi_args.end());
  command.insert(command.end(), {"-n", std::to_string(options.ranks)});
  const std::vector<std::string> program = program_of_ranks(options, found);
  command.insert(command.end(), program.begin(), program.end());
  return command;
}

std::vector<std::string> program_of_ranks(const Options& options, const Surroundings& found) {
  return options.cluster.empty()
             ? options.program
             : program_of_tasks(options.cluster, addresses_of_tasks(options, found), options.program);
}

std::vector<std::string> listening_on_loopback(std::vector<std::string> mpirun) {
  for (const char* folder : {"lib", KOLO_LIBRARY_FOLDER}) {
    const std::string library = fmt::format("{}/../{}/libkolo_loopback_only.so", own_folder(), folder);
    const bool can_be_named = library.find_first_of(" :") == std::string::npos;
    if (!can_be_named || ::access(library.c_str(), R_OK) != 0) continue;
    const char* const before = std::getenv("LD_PRELOAD");
    const std::string others = before == nullptr || *before == '\0' ? "" : std::string(":") + before;
    mpirun.insert(mpirun.begin(), {"env", fmt::format("LD_PRELOAD={}{}", library, others)});
    break;
  }
  return mpirun;
}

std::string shell_quote(const std::vector<std::string>& words) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=.,:/@%^";
  std::string line;
  for (const std::string& word : words) {
    if (!line.empty()) line += ' ';
    if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) {
      line += word;
      continue;
    }
    line += '\'';
    for (const char c : word) line += c == '\'' ? std::string("'\\''") : std::string(1, c);
    line += '\'';
  }
  return line;
}

}  // namespace kolo::launcher
