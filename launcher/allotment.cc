#include <kolo/launcher/allotment.h>

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string_view>
#include <utility>

#include <kolo/core/base/batch_job.h>
#include <kolo/core/base/error.h>
#include <kolo/core/base/json_text.h>
#include <kolo/core/base/text.h>
#include <kolo/launcher/host_lists.h>

namespace kolo::launcher {
namespace {

// Variables of MPIs that name a hostfile.
constexpr const char* kHostfileVariables[] = {"OMPI_MCA_orte_default_hostfile", "OMPI_MCA_hostfile",
                                              "PRTE_MCA_prte_default_hostfile", "HYDRA_HOST_FILE",
                                              "I_MPI_HYDRA_HOST_FILE"};

// An MPI operator names the launcher's pod train-launcher, or train-launcher-x7k2p; "" for another host.
std::string job_of_launcher(const std::string& hostname) {
  constexpr std::string_view kRole = "-launcher";
  const size_t role = hostname.rfind(kRole);
  if (role == std::string::npos) return "";
  const std::string_view rest = std::string_view(hostname).substr(role + kRole.size());
  const bool is_of_pod =
      rest.empty() || (rest[0] == '-' && rest.find_first_of("-.", 1) == std::string_view::npos);
  return is_of_pod ? hostname.substr(0, role) : "";
}

// The variables of one environment, and the program that answers questions.
class Reader {
 public:
  Reader(const Environment& environment, const Ask& ask) : environment_(environment), ask_(ask) {}

  bool has(const std::string& name) const { return environment_.count(name) > 0; }
  std::string text(const std::string& name) const {
    const auto found = environment_.find(name);
    return found == environment_.end() ? "" : found->second;
  }
  /// Nothing if it is unset or no whole number of at least `least`.
  std::optional<int> number(const std::string& name, int least = 1) const {
    const auto value = parse_int64(text(name));
    const bool good = value && *value >= least && *value <= std::numeric_limits<int>::max();
    return good ? std::optional(static_cast<int>(*value)) : std::nullopt;
  }
  /// The same for a variable that has to be right where it is set.
  std::optional<int> checked_number(const std::string& name) const {
    const auto value = number(name);
    if (has(name) && !value) refuse(name);
    return value;
  }
  std::string job_of(const char* system) const {
    const std::string job = detail::batch_job_of(system, [this](const char* name) { return text(name); }).job;
    return job.empty() && std::string_view(system) == detail::kMpiOperator ? job_of_launcher(text("HOSTNAME"))
                                                                           : job;
  }
  int restarts_of(std::string_view system) const {
    const char* const name = system == "Slurm"         ? "SLURM_RESTART_COUNT"
                             : system == "Grid Engine" ? "RESTARTED"
                                                       : "";
    return number(name).value_or(0);
  }
  std::optional<std::string> ask(const std::vector<std::string>& command) const { return ask_(command); }
  [[noreturn]] void refuse(const std::string& name) const {
    throw InvalidArgumentError("{}=\"{}\" says no hosts; give them, as in: kolorun --host node1:2 program",
                               name, text(name));
  }

 private:
  const Environment& environment_;
  const Ask& ask_;
};

void add_host(std::vector<Host>& hosts, const std::string& name, int slots) {
  const auto known =
      std::find_if(hosts.begin(), hosts.end(), [&](const Host& host) { return host.name == name; });
  if (known == hosts.end()) hosts.push_back({name, slots});
  else known->slots += slots;
}

std::vector<int> slots_of(const std::vector<Host>& hosts) {
  std::vector<int> slots;
  for (const Host& host : hosts) slots.push_back(host.slots);
  return slots;
}

// Slurm's CPUs are cores, or hardware threads where its nodes are described so; only Slurm knows.
int cpus_of_a_core(const Reader& read, const std::string& host) {
  const auto node = read.ask({"scontrol", "show", "node", "-o", host});
  if (!node) return 1;
  std::map<std::string, std::int64_t> told;
  std::istringstream words(*node);
  for (std::string word; words >> word;)
    if (const size_t equals = word.find('='); equals != std::string::npos)
      told[word.substr(0, equals)] = parse_int64(word.substr(equals + 1)).value_or(0);
  const std::int64_t cores = told["Sockets"] * told["CoresPerSocket"], threads = told["ThreadsPerCore"];
  return threads > 1 && told["CPUTot"] == cores * threads ? static_cast<int>(threads) : 1;
}

// One component of a job: `suffix` ends its variables' names.
void add_slurm_group(const Reader& read, const std::string& suffix, int group, Allotment& job) {
  const std::string hosts = "SLURM_JOB_NODELIST" + suffix, tasks = "SLURM_TASKS_PER_NODE" + suffix;
  const std::vector<std::string> names = expand_host_list(read.text(hosts));
  if (names.empty()) read.refuse(hosts);
  const std::vector<int> slots =
      read.has(tasks) ? expand_counts(read.text(tasks)) : std::vector<int>(names.size(), 1);
  if (slots.size() != names.size()) read.refuse(tasks);
  const std::vector<int> cpus = expand_counts(read.text("SLURM_JOB_CPUS_PER_NODE" + suffix));
  const auto per_task = read.number("SLURM_CPUS_PER_TASK" + suffix);
  for (size_t i = 0; i < names.size(); ++i) {
    add_host(job.hosts, names[i], slots[i]);
    job.group_of_host.push_back(group);
    if (cpus.size() == names.size()) job.cores.push_back(cpus[i]);
    else if (per_task) job.cores.push_back(*per_task * slots[i]);
  }
}

Allotment of_slurm(const Reader& read) {
  Allotment job;
  job.source = read.has("SLURM_TASKS_PER_NODE") ? "SLURM_TASKS_PER_NODE" : "SLURM_JOB_NODELIST";
  job.groups = read.number("SLURM_HET_SIZE").value_or(1);
  if (job.groups == 1) add_slurm_group(read, "", 0, job);
  else
    for (int group = 0; group < job.groups; ++group)
      add_slurm_group(read, fmt::format("_HET_GROUP_{}", group), group, job);
  if (job.groups > 1) job.source = "SLURM_TASKS_PER_NODE_HET_GROUP_0";
  if (job.groups == 1 || job.group_of_host.size() != job.hosts.size()) job.group_of_host.clear();
  if (job.cores.size() != job.hosts.size()) job.cores.clear();  // also where a host is in two components
  if (job.groups == 1) job.cores_per_rank = read.checked_number("SLURM_CPUS_PER_TASK");
  const int divisor = job.cpus_per_core = cpus_of_a_core(read, job.hosts[0].name);
  for (int& cores : job.cores) cores = std::max(1, cores / divisor);
  if (job.cores_per_rank) job.cores_per_rank = std::max(1, *job.cores_per_rank / divisor);
  job.gpus_per_host = read.number("SLURM_GPUS_ON_NODE");
  job.ranks = std::min(total_slots(job.hosts),
                       read.checked_number("SLURM_NTASKS").value_or(std::numeric_limits<int>::max()));
  return job;
}

// Words at the start of each line of the file that the variable names: a host, and its slots where `column`
// has them.
void add_hosts_of_file(const Reader& read, const char* variable, bool slots_in_second_column,
                       Allotment& job) {
  std::ifstream file(read.text(variable));
  for (std::string line, name; std::getline(file, line);) {
    std::istringstream words(line);
    if (!(words >> name)) continue;
    int slots = 1;
    if (slots_in_second_column && (!(words >> slots) || slots < 1)) read.refuse(variable);
    add_host(job.hosts, name, slots);
  }
  if (job.hosts.empty()) read.refuse(variable);
  job.source = variable;
}

Allotment of_pbs(const Reader& read) {
  Allotment job;
  add_hosts_of_file(read, "PBS_NODEFILE", false, job);
  // NCPUS is a chunk's, not a rank's. PBS sets OMP_NUM_THREADS itself, mostly to the same number.
  if (const auto cpus = read.number("NCPUS")) {
    const auto threads = read.number("OMP_NUM_THREADS");
    job.cores_per_rank = threads && *threads != *cpus ? *threads : std::max(1, *cpus / job.hosts[0].slots);
  }
  return job;
}

Allotment of_lsf(const Reader& read) {
  Allotment job;
  if (read.has("LSB_DJOB_HOSTFILE")) {
    add_hosts_of_file(read, "LSB_DJOB_HOSTFILE", false, job);
  } else {
    job.source = "LSB_MCPU_HOSTS";
    std::istringstream words(read.text(job.source));
    for (std::string name; words >> name;) {
      int slots = 0;
      if (!(words >> slots) || slots < 1) read.refuse(job.source);
      add_host(job.hosts, name, slots);
    }
    if (job.hosts.empty()) read.refuse(job.source);
  }
  job.cores = slots_of(job.hosts);
  return job;
}

Allotment of_grid_engine(const Reader& read) {
  Allotment job;
  add_hosts_of_file(read, "PE_HOSTFILE", true, job);
  return job;
}

// Its hosts have equal cores, a rank each.
std::optional<Allotment> of_flux(const Reader& read) {
  const auto said = read.ask({"flux", "resource", "list", "-n", "-o", "{nodelist} {ncores}"});
  std::istringstream words(said.value_or(""));
  std::string list;
  int cores = 0;
  words >> list >> cores;
  const std::vector<std::string> names = expand_host_list(list);
  if (names.empty() || cores < 1) return std::nullopt;
  Allotment job;
  job.source = "flux resource list";
  const int each = std::max(1, cores / static_cast<int>(names.size()));
  for (const std::string& name : names) add_host(job.hosts, name, each);
  job.cores = slots_of(job.hosts);
  return job;
}

struct System {
  const char* name;
  std::function<bool(const Reader&)> is_here;
  std::function<std::optional<Allotment>(const Reader&)> read;
};

std::string hostfile_variable(const Reader& read) {
  for (const char* name : kHostfileVariables)
    if (read.has(name)) return name;
  return "";
}

Allotment of_mpi(const Reader& read) {
  Allotment job;
  job.source = hostfile_variable(read);
  try {
    job.hosts = read_hostfile(read.text(job.source));
  } catch (const Error&) {
    read.refuse(job.source);
  }
  return job;
}

const std::vector<System>& systems() {
  static const std::vector<System> all = {
      {detail::kMpiOperator, [](const Reader& r) { return !hostfile_variable(r).empty(); }, of_mpi},
      {"Slurm",
       [](const Reader& r) {
         return r.has("SLURM_JOB_ID") && (r.has("SLURM_JOB_NODELIST") || r.has("SLURM_HET_SIZE"));
       },
       of_slurm},
      {"PBS", [](const Reader& r) { return r.has("PBS_NODEFILE"); }, of_pbs},
      {"LSF", [](const Reader& r) { return r.has("LSB_DJOB_HOSTFILE") || r.has("LSB_MCPU_HOSTS"); }, of_lsf},
      {"Grid Engine", [](const Reader& r) { return r.has("PE_HOSTFILE"); }, of_grid_engine},
      {"Flux", [](const Reader& r) { return r.has("FLUX_JOB_ID") && !r.has("PMI_RANK"); }, of_flux}};
  return all;
}

}  // namespace

Environment own_environment() {
  Environment variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text(*entry);
    const size_t equals = text.find('=');
    if (equals != std::string::npos) variables.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return variables;
}

std::optional<Allotment> find_allotment(const Environment& environment, const Ask& ask) {
  const Reader read(environment, ask);
  std::optional<Allotment> job;
  for (const System& system : systems()) {
    if (!system.is_here(read)) continue;
    if (job) {
      job->also = system.name;
      if (job->system == detail::kMpiOperator) {
        job->job = read.job_of(system.name);
        job->restarts = read.restarts_of(system.name);
      }
      break;
    }
    job = system.read(read);
    if (!job) continue;
    job->system = system.name;
    job->job = read.job_of(system.name);
    job->restarts = read.restarts_of(system.name);
    if (job->ranks == 0) job->ranks = total_slots(job->hosts);
  }
  return job;
}

detail::BatchJob batch_job_of(const std::optional<Allotment>& allotment) {
  if (!allotment) return {};
  const bool is_inside = allotment->system == detail::kMpiOperator && !allotment->also.empty();
  return {.system = is_inside ? allotment->also : allotment->system, .job = allotment->job};
}

std::vector<int> cores_of_ranks(const Allotment& allotment, const std::vector<Host>& hosts, int ranks) {
  const std::vector<int> counts = ranks_per_host(hosts, ranks);
  std::vector<int> cores(hosts.size(), 0);
  for (size_t i = 0; i < hosts.size(); ++i) {
    const auto known = std::find_if(allotment.hosts.begin(), allotment.hosts.end(),
                                    [&](const Host& host) { return is_same_host(host.name, hosts[i].name); });
    if (known == allotment.hosts.end()) continue;
    if (allotment.cores_per_rank) cores[i] = *allotment.cores_per_rank;
    else if (!allotment.cores.empty())
      cores[i] = std::max(1, allotment.cores[known - allotment.hosts.begin()] / std::max(1, counts[i]));
  }
  return cores;
}

std::string allotment_text(const Allotment& allotment) {
  std::string text;
  const std::vector<int> cores = cores_of_ranks(allotment, allotment.hosts, total_slots(allotment.hosts));
  for (size_t i = 0; i < allotment.hosts.size(); ++i)
    text += fmt::format(
        "{}: {}{}{}, from {}\n", allotment.hosts[i].name, count_of(allotment.hosts[i].slots, "rank"),
        cores[i] > 0 ? " of " + count_of(cores[i], "core") : "",
        allotment.gpus_per_host ? ", " + count_of(*allotment.gpus_per_host, "GPU") : "", allotment.source);
  return text;
}

std::string allotment_json(const Allotment& allotment, const std::vector<std::string>& command) {
  const std::vector<int> cores = cores_of_ranks(allotment, allotment.hosts, total_slots(allotment.hosts));
  nlohmann::ordered_json json = {{"event", "allotment"},
                                 {"system", allotment.system},
                                 {"source", allotment.source},
                                 {"job", allotment.job},
                                 {"restarts", allotment.restarts},
                                 {"ranks", allotment.ranks},
                                 {"hosts", nlohmann::ordered_json::array()}};
  for (size_t i = 0; i < allotment.hosts.size(); ++i) {
    nlohmann::ordered_json host = {{"name", allotment.hosts[i].name}, {"ranks", allotment.hosts[i].slots}};
    host["cores_per_rank"] =
        cores[i] > 0 ? nlohmann::ordered_json(cores[i]) : nlohmann::ordered_json(nullptr);
    json["hosts"].push_back(std::move(host));
  }
  json["command"] = command;
  return json_text(json) + "\n";
}

}  // namespace kolo::launcher
