#include <kolo/launcher/options.h>

#include <fmt/core.h>

#include <boost/program_options.hpp>

#include <algorithm>
#include <cstddef>
#include <sstream>
#include <utility>

#include <kolo/core/base/count_of.h>
#include <kolo/core/base/error.h>
#include <kolo/core/base/exit_code.h>
#include <kolo/core/base/text.h>
#include <kolo/launcher/foreign_options.h>
#include <kolo/launcher/option_rows.h>
#include <kolo/launcher/option_values.h>

namespace kolo::launcher {
namespace {

namespace po = boost::program_options;

constexpr OptionRow kJobOptions[] = {
    {"ranks,n", "N",
     "number of ranks, also -np; left out: all slots of --host or --hostfile, or what a batch "
     "system has allotted"},
    {"host,H", "LIST", "machines and their slots, as in node1:2,node2:2 (1 slot where no number is given)"},
    {"hostfile", "FILE", "the same from a file, one a line, as in: node1 slots=2"},
    {"bind", "core|none",
     "core: each rank has cores of its own, cores/ranks of them; none: the system places ranks; "
     "left out: core, but none with more ranks than cores, in a batch job, or where hosts share a machine"},
    {"prefix", "auto|always|never",
     "the rank, as in \"[1] \", before each line; auto (the default): with several ranks, but not "
     "before a line of JSON or one that already starts with [rank/size host]"},
    {"start-timeout", "S",
     "before a start wait so long for hosts that do not answer yet (300 where the MPI's hostfile variable "
     "names them, as for the MPI operator, else 0)"},
    {"stop-grace", "S", "seconds the ranks have to save after SIGTERM or SIGINT (10)"},
    {"launcher", "auto|srun|mpirun|hydra",
     "what starts the ranks; auto (the default): srun in a job of Slurm that it can serve, else "
     "Open MPI's mpirun, or hydra if kolo was built with MPICH or Intel MPI"},
    {"stop-before", "S",
     "ask the ranks to stop S seconds before the time of a Slurm job ends (60, at most a tenth of "
     "what is left at the start; 0: never)"},
    {"stop-file", "PATH",
     "ask the ranks to stop when this file appears; looked for once a second on each host"},
    {"stop-when", "CMD",
     "run this command every 5 s on each host; where it ends with 0, that host is about to go: the "
     "ranks stop, with --elastic to go on without it"},
    {"stop-here", "",
     "start nothing: ask the ranks on this host to stop, and wait until they have ended; exit code "
     "0 if all have"},
    {"wait", "S", "for --stop-here: at most so many seconds (25)"},
    {"requeue", "",
     "when the ranks were stopped and have saved, ask the batch system to start this job again "
     "(KOLO_REQUEUE=1)"},
    {"stopped-exit-code", "N",
     "exit code of a job that was stopped and has saved (KOLO_STOPPED_EXIT_CODE, else 0; with "
     "--requeue 75)"},
    {"restarts", "N", "start a failed job again, up to N times (0)"},
};

constexpr OptionRow kOtherOptions[] = {
    {"cluster", "ps=N,worker=M",
     "each rank is a task, in this order; it finds the cluster and its place there in KOLO_CLUSTER"},
    {"cluster-port", "P",
     "with --cluster on several hosts: the first task of each listens there, the next one on P+1, … "
     "(2222)"},
    {"export,x", "NAME[=VALUE]",
     "hand this variable to the ranks on other hosts; again for more. KOLO_*, HOROVOD_*, OMP_*, "
     "PATH, LD_LIBRARY_PATH and PYTHONPATH always are",
     true},
    {"mpi-args", "\"...\"", "passed on to mpirun", true},
    {"dry-run", "", "print the mpirun command and do nothing"},
    {"verbose", "", "print the command that starts the ranks, on stderr, before it runs"},
    {"log-dir", "DIR", "write what each rank prints to DIR/rank_N.log as well, and all of it to DIR/job.log"},
    {"quiet,q", "", "leave out mpirun's own notes on how the job ended"},
    {"stdin", "", "rank 0 reads kolorun's standard input; left out, all ranks read /dev/null"},
    {"check-build", "", "print what this build was made with and what it finds here"},
    {"check-network", "",
     "measure the links between the hosts of the job; with a program, before it is started"},
    {"gradient-bytes", "N", "for --check-network: what a step reduces (102228128, ResNet-50)"},
    {"step-ms", "MS", "for --check-network: how long a step computes (250)"},
    {"json", "", "for --check-network and --show-allotment: one JSON object"},
    {"show-allotment", "",
     "print the hosts, ranks and cores that a batch system has allotted, and what would be started "
     "there"},
    {"help,h", "", "print this"},
    {"version", "", "print the version"},
};

po::options_description make_description() {
  po::options_description all("Options", 110, 60);
  describe(all, kJobOptions);
  describe_elastic(all);
  describe(all, kOtherOptions);
  return all;
}

std::vector<std::string> option_names(const po::options_description& description) {
  std::vector<std::string> names;
  for (const auto& option : description.options()) names.push_back("--" + option->long_name());
  return names;
}

void check_export(const std::string& entry) {
  const std::string name = entry.substr(0, entry.find('='));
  const auto in_name = [](unsigned char c) { return std::isalnum(c) || c == '_'; };
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0])) ||
      !std::all_of(name.begin(), name.end(), in_name))
    throw InvalidArgumentError(
        "-x \"{}\" does not name an environment variable; allowed: -x NAME or -x NAME=VALUE", entry);
}

// boost's split_unix takes an unclosed quote as closed at the end; a user who forgot one should hear of it.
std::vector<std::string> split_like_shell(const std::string& text) {
  char quote = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\') ++i;
    else if (quote != 0) quote = text[i] == quote ? 0 : quote;
    else if (text[i] == '"' || text[i] == '\'') quote = text[i];
  }
  if (quote != 0) throw InvalidArgumentError("--mpi-args \"{}\": a quote is not closed", text);
  return po::split_unix(text);
}

// True if `word` is an option whose value is the next word.
bool takes_next_word(const std::string& word, const po::options_description& description) {
  const auto needs_value = [&](const std::string& name) {
    const auto* const option = description.find_nothrow(name, false);
    return option != nullptr && option->semantic()->min_tokens() > 0;
  };
  if (word.substr(0, 2) == "--") return word.find('=') == std::string::npos && needs_value(word.substr(2));
  for (size_t i = 1; i < word.size(); ++i)  // as in -qn 2
    if (needs_value(std::string{'-', word[i]})) return i + 1 == word.size();
  return false;
}

struct CommandLine {
  std::vector<std::string> options, mpi_args, program;
};

CommandLine split(const std::vector<std::string>& words, const po::options_description& description) {
  CommandLine line;
  size_t next = 0;
  for (; next < words.size() && words[next] != "--" && words[next].substr(0, 1) == "-"; ++next) {
    if (const OwnWords own = own_words(words, next); own.taken > 0) {
      line.options.insert(line.options.end(), own.words.begin(), own.words.end());
      line.mpi_args.insert(line.mpi_args.end(), own.mpi.begin(), own.mpi.end());
      next += own.taken - 1;
      continue;
    }
    line.options.push_back(words[next]);
    if (takes_next_word(line.options.back(), description) && next + 1 < words.size())
      line.options.push_back(words[++next]);
  }
  // Several of Horovod's options mean it.
  const auto first = std::find(line.options.begin(), line.options.end(), "--elastic");
  if (first != line.options.end())
    line.options.erase(std::remove(first + 1, line.options.end(), "--elastic"), line.options.end());
  if (next < words.size() && words[next] == "--") ++next;
  line.program.assign(words.begin() + static_cast<std::ptrdiff_t>(next), words.end());
  return line;
}

po::variables_map parse_options(const po::options_description& description,
                                const std::vector<std::string>& words) {
  try {
    const int style = po::command_line_style::unix_style & ~po::command_line_style::allow_guessing;
    const auto parsed = po::command_line_parser(words).options(description).positional({}).style(style).run();
    po::variables_map values;
    po::store(parsed, values);
    return values;
  } catch (const po::unknown_option& error) {
    const std::string name = error.get_option_name();
    throw InvalidArgumentError("unknown option {}{} (kolorun --help lists them)", name,
                               did_you_mean(name, option_names(description)));
  } catch (const po::error& error) {
    throw InvalidArgumentError("{} (kolorun --help lists the options)", error.what());
  }
}

void read_allotment(Options& options, const Environment& environment, const Ask& ask) {
  const bool hosts_are_named = !options.hosts.empty() || mpi_args_name_hosts(options);
  try {
    options.allotment = find_allotment(environment, ask);
  } catch (const InvalidArgumentError&) {
    if (!hosts_are_named) throw;
  }
  if (options.allotment && !hosts_are_named) options.hosts = options.allotment->hosts;
}

void read_hosts(Options& options, const po::variables_map& values) {
  if (values.count("host") && values.count("hostfile"))
    throw InvalidArgumentError("--host and --hostfile both name the machines; give one of them");
  if (values.count("host")) options.hosts = parse_hosts(values["host"].as<std::string>());
  if (!values.count("hostfile")) return;
  const auto path = values["hostfile"].as<std::string>();
  options.hosts = read_hostfile(path);
  if (std::any_of(options.hosts.begin(), options.hosts.end(), [](const Host& h) { return h.hostfile_alone; }))
    options.hostfile = path;
}

bool hosts_are_allotted(const Options& options) {
  return options.allotment && options.hosts == options.allotment->hosts;
}

// An operator starts the launcher beside workers that are still being made. Elsewhere a host that does not
// answer is a misspelt one as a rule, of which its user wants to hear at once. A hostfile variable inside a
// batch job is no operator's, and that system may let nobody in over ssh.
void read_start_timeout(Options& options, const po::variables_map& values) {
  constexpr double kOfWorkers_s = 300;
  if (values.count("start-timeout"))
    options.start_timeout_s = seconds_of("--start-timeout", values["start-timeout"].as<std::string>());
  else if (hosts_are_allotted(options) && options.allotment->system == detail::kMpiOperator &&
           options.allotment->also.empty())
    options.start_timeout_s = kOfWorkers_s;
}

void read_cluster(Options& options, const po::variables_map& values) {
  if (values.count("cluster")) options.cluster = parse_cluster(values["cluster"].as<std::string>());
  if (!values.count("cluster-port")) return;
  if (options.cluster.empty())
    throw InvalidArgumentError("--cluster-port belongs to --cluster, which is not given");
  constexpr int kLastPort = 65535;
  options.cluster_port = static_cast<int>(
      whole_number("--cluster-port", values["cluster-port"].as<std::string>(), 1, kLastPort));
}

std::optional<int> given_ranks(const po::variables_map& values) {
  if (!values.count("ranks")) return std::nullopt;
  return static_cast<int>(whole_number("-n", values["ranks"].as<std::string>(), 1, kMostNumber));
}

// An elastic job has a list of hosts, also where it is this machine alone.
void read_elastic_hosts(Options& options, const po::variables_map& values, const Ask& ask) {
  if (!options.elastic) return;
  if (!options.cluster.empty())
    throw InvalidArgumentError(
        "--elastic starts jobs of equal ranks; the tasks of --cluster are of several kinds");
  if (mpi_args_name_hosts(options) || !options.hostfile.empty())
    throw InvalidArgumentError(
        "--elastic chooses the hosts of each start; name them by --host, or in a --hostfile without users "
        "and "
        "IPv6");
  if (const std::string& command = options.elastic->discover; !command.empty()) {
    const auto printed = ask({"sh", "-c", command});
    if (!printed && options.hosts.empty())
      throw NotFoundError("--discover {}: it failed, or took over 5 s, and no hosts are named", command);
    try {
      if (printed) options.hosts = parse_discovered(*printed, options.hosts, options.elastic->slots_per_host);
    } catch (const InvalidArgumentError& error) {
      if (options.hosts.empty())
        throw InvalidArgumentError("--discover {}: {}; no hosts are named", command, error.what());
    }  // else HostWatch finds the same, and tells it
  } else if (options.hosts.empty() && values.count("ranks")) {
    options.hosts = {{"localhost", *given_ranks(values)}};
  }
}

void read_ranks(Options& options, const po::variables_map& values) {
  if (const auto ranks = given_ranks(values)) options.ranks = *ranks;
  else if (!options.cluster.empty()) options.ranks = total_tasks(options.cluster);
  else if (options.allotment && (hosts_are_allotted(options) || options.hosts.empty()))
    options.ranks = options.allotment->ranks;
  else if (!options.hosts.empty()) options.ranks = total_slots(options.hosts);
  else
    throw InvalidArgumentError(
        "the number of ranks is missing; give it, as in: kolorun -n 2 kolo-train --model lenet");
  if (!options.cluster.empty() && options.ranks != total_tasks(options.cluster))
    throw InvalidArgumentError("-n {} does not fit --cluster, which has {} tasks; leave -n out",
                               options.ranks, total_tasks(options.cluster));
  if (options.elastic) {
    check_elastic(*options.elastic, options.hosts);
    if (!values.count("ranks")) options.ranks = std::min(options.ranks, options.elastic->rules.max_ranks);
  }
  const bool may_overfill = std::find(options.mpi_args.begin(), options.mpi_args.end(), "--oversubscribe") !=
                            options.mpi_args.end();
  const bool may_come = options.elastic && !options.elastic->discover.empty();
  if (options.hosts.empty() || may_overfill || may_come || options.ranks <= total_slots(options.hosts))
    return;
  const bool allotted = hosts_are_allotted(options);
  throw InvalidArgumentError(
      "-n {} ranks do not fit into the {} of {}{}; give a host more slots, as in {}{}:{}", options.ranks,
      count_of(total_slots(options.hosts), "slot"), format_hosts(options.hosts),
      allotted ? fmt::format(", from {}", options.allotment->source) : "", allotted ? "--host " : "",
      options.hosts[0].name, options.hosts[0].slots + options.ranks - total_slots(options.hosts));
}

void read_network_check(Options& options, const po::variables_map& values) {
  options.check_network = values.count("check-network") > 0;
  options.json = values.count("json") > 0;
  for (const char* name : {"gradient-bytes", "step-ms", "json"})
    if (values.count(name) && !options.check_network && !(options.show_allotment && options.json))
      throw InvalidArgumentError("--{} belongs to --check-network, which is not given", name);
  constexpr std::int64_t kMostBytes = std::int64_t{1} << 50;
  if (values.count("gradient-bytes"))
    options.gradient_bytes =
        whole_number("--gradient-bytes", values["gradient-bytes"].as<std::string>(), 1, kMostBytes);
  if (!values.count("step-ms")) return;
  const std::string text = values["step-ms"].as<std::string>();
  const auto step = parse_double(text);
  if (!step || !(*step > 0) || *step > 1e9)
    throw InvalidArgumentError("--step-ms \"{}\" is not valid; allowed: milliseconds above 0", text);
  options.step_ms = *step;
}

void read_lists(Options& options, const po::variables_map& values) {
  if (values.count("export")) options.exported = values["export"].as<std::vector<std::string>>();
  std::for_each(options.exported.begin(), options.exported.end(), check_export);
  if (!values.count("mpi-args")) return;
  for (const std::string& text : values["mpi-args"].as<std::vector<std::string>>()) {
    const auto words = split_like_shell(text);
    options.mpi_args.insert(options.mpi_args.end(), words.begin(), words.end());
  }
}

bool read_stop_here(Options& options, const po::variables_map& values) {
  options.stop_here = values.count("stop-here") > 0;
  if (values.count("wait") > 0) {
    if (!options.stop_here) throw InvalidArgumentError("--wait belongs to --stop-here, which is not given");
    options.wait_s = seconds_of("--wait", values["wait"].as<std::string>());
  }
  return options.stop_here;
}

// How the ranks are started, shown and asked to stop.
void read_start(Options& options, const po::variables_map& values, const Environment& environment) {
  options.show_allotment = values.count("show-allotment") > 0;
  options.dry_run = values.count("dry-run") > 0;
  options.quiet = values.count("quiet") > 0;
  options.verbose = values.count("verbose") > 0;
  if (values.count("log-dir")) options.log_dir = values["log-dir"].as<std::string>();
  options.hand_on_stdin = values.count("stdin") > 0;
  if (values.count("bind"))
    options.bind =
        choice("--bind", values["bind"].as<std::string>(), {"core", "none"}) == 0 ? Bind::core : Bind::none;
  if (values.count("prefix"))
    options.prefix = static_cast<Prefix>(
        choice("--prefix", values["prefix"].as<std::string>(), {"auto", "always", "never"}));
  if (values.count("stop-grace"))
    options.stop_grace_s = seconds_of("--stop-grace", values["stop-grace"].as<std::string>());
  if (values.count("launcher"))
    options.launcher = static_cast<Launcher>(
        choice("--launcher", values["launcher"].as<std::string>(), {"auto", "srun", "mpirun", "hydra"}));
  if (values.count("stop-file")) options.stop_file = values["stop-file"].as<std::string>();
  if (values.count("stop-when")) options.stop_when = values["stop-when"].as<std::string>();
  const auto stop_before = environment.find("KOLO_STOP_BEFORE");
  if (values.count("stop-before"))
    options.stop_before_s = seconds_of("--stop-before", values["stop-before"].as<std::string>());
  else if (stop_before != environment.end())
    options.stop_before_s = seconds_of("KOLO_STOP_BEFORE", stop_before->second);
}

void read_stopping(Options& options, const po::variables_map& values, const Environment& environment) {
  constexpr int kMost = 125;  // shells use those above
  const auto set = environment.find("KOLO_STOPPED_EXIT_CODE"), asked = environment.find("KOLO_REQUEUE");
  options.requeue = values.count("requeue") > 0 ||
                    (asked != environment.end() && whole_number("KOLO_REQUEUE", asked->second, 0, 1) == 1);
  if (values.count("stopped-exit-code"))
    options.stopped_exit_code = static_cast<int>(
        whole_number("--stopped-exit-code", values["stopped-exit-code"].as<std::string>(), 0, kMost));
  else if (set != environment.end())
    options.stopped_exit_code =
        static_cast<int>(whole_number("KOLO_STOPPED_EXIT_CODE", set->second, 0, kMost));
  else if (options.requeue) options.stopped_exit_code = detail::kTemporaryFailure;
  if (options.requeue && options.stopped_exit_code == 0)
    throw InvalidArgumentError(
        "--requeue needs an exit code that tells a stop from the end; leave 0 out, or choose 1 to {}", kMost);
  // To grow, the ranks are stopped; an end looks different.
  if (!options.elastic || options.stopped_exit_code != 0) return;
  options.stopped_exit_code = detail::kTemporaryFailure;
  options.elastic->hides_stopped_code = true;
}

}  // namespace

bool mpi_args_name_hosts(const Options& options) {
  constexpr std::string_view kNames[] = {
      "--host",           "-host",         "-H",           "--hostfile",
      "-hostfile",        "--machinefile", "-machinefile", "--default-hostfile",
      "-default-hostfile"};
  return std::find_first_of(options.mpi_args.begin(), options.mpi_args.end(), std::begin(kNames),
                            std::end(kNames)) != options.mpi_args.end();
}

Options parse_command_line(int argc, const char* const* argv, const Environment& environment,
                           const Ask& ask) {
  const auto description = make_description();
  CommandLine line = split({argv + std::min(argc, 1), argv + argc}, description);
  const auto values = parse_options(description, line.options);

  Options options;
  options.help = values.count("help") > 0;
  options.version = values.count("version") > 0;
  options.check_build = values.count("check-build") > 0;
  if (options.help || options.version || options.check_build) return options;

  if (read_stop_here(options, values)) return options;
  read_start(options, values, environment);
  options.elastic = read_elastic(values, given_ranks(values));
  read_stopping(options, values, environment);
  if (options.elastic) options.restarts = ElasticOptions::kRestarts;
  if (values.count("restarts"))
    options.restarts =
        static_cast<int>(whole_number("--restarts", values["restarts"].as<std::string>(), 0, kMostNumber));
  read_network_check(options, values);
  options.mpi_args = std::move(line.mpi_args);
  read_lists(options, values);
  read_hosts(options, values);
  read_allotment(options, environment, ask);
  read_start_timeout(options, values);
  read_cluster(options, values);
  read_elastic_hosts(options, values, ask);
  options.program = std::move(line.program);
  if (options.show_allotment && !options.allotment)
    throw NotFoundError("--show-allotment: no batch system has allotted anything to this shell");
  read_ranks(options, values);
  if (options.program.empty() && (options.check_network || options.show_allotment)) return options;
  if (options.program.empty() || options.program[0].empty())
    throw InvalidArgumentError(
        "no program is given; write it behind the options, as in: kolorun -n 2 kolo-train --model lenet");
  return options;
}

std::string help_text() {
  std::ostringstream text;
  text
      << "kolorun starts a program as several ranks, here or on several hosts, by the launcher of its "
         "MPI.\n\n"
         "  kolorun -n 2 [options] program [arguments]\n\n"
      << make_description()
      << "\n"
         "The first word that is no option is the program; -- may stand before it.\n"
         "Options of mpirun, horovodrun and torchrun are taken where kolorun has the like (--nproc_per_node, "
         "--bind-to, --oversubscribe, …).\n"
         "A program without a slash in its name is looked for in PATH and then beside kolorun.\n"
         "In a job of Slurm, PBS, LSF, Grid Engine or Flux, hosts, ranks and cores are those that it has "
         "allotted.\n"
         "Threads: OMP_NUM_THREADS is cores/ranks of a machine, unless it is set already.\n"
         "Signals: the first SIGTERM or SIGINT asks the ranks to stop and waits --stop-grace seconds, the "
         "second ends them at\n"
         "once; SIGUSR1 and SIGUSR2 are handed on. On other hosts the request is SIGUSR1, which kolo's "
         "programs take likewise.\n"
         "Exit code: the job's; --stopped-exit-code after a stop that has saved; 1 if it could not be "
         "started, 2 for a command line that is not understood.\n";
  return text.str();
}

}  // namespace kolo::launcher
