// kolorun's command line.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <kolo/launcher/allotment.h>
#include <kolo/launcher/cluster_tasks.h>
#include <kolo/launcher/elastic_options.h>
#include <kolo/launcher/hosts.h>

namespace kolo::launcher {

enum class Bind { automatic, core, none };
enum class Prefix { automatic, always, never };
enum class Launcher { automatic, srun, mpirun, hydra };

struct Options {
  int ranks = 0;  // -n; without it all slots of the hosts, or as many as a batch system has allotted
  std::vector<Host> hosts;             // --host, --hostfile, or the allotment's; empty: this machine
  std::optional<Allotment> allotment;  // what a batch system has set aside, also where hosts are named
  std::string hostfile;               // --hostfile, where mpirun has to read it itself (Host::hostfile_alone)
  std::string host_list;              // the path of a HostList with `hosts`; "": the command line names them
  Bind bind = Bind::automatic;        // --bind
  Prefix prefix = Prefix::automatic;  // --prefix
  Launcher launcher = Launcher::automatic;  // --launcher; choose_launcher makes it one of the others
  std::optional<double> stop_before_s;      // --stop-before; empty: 60, at most a tenth of what is left
  std::string stop_file;                    // --stop-file: the ranks stop when it appears
  std::string stop_when;       // --stop-when: … when this command ends with 0 on one of the hosts
  bool requeue = false;        // --requeue
  int stopped_exit_code = 0;   // --stopped-exit-code, KOLO_STOPPED_EXIT_CODE; with --requeue 75
  double stop_grace_s = 10;    // --stop-grace: time the ranks have to save after a request to stop
  double start_timeout_s = 0;  // --start-timeout: time for hosts that do not answer yet at a start
  int restarts = 0;            // --restarts
  std::optional<ElasticOptions> elastic;    // --elastic: hosts and ranks are then those of the first start
  bool dry_run = false;                     // --dry-run
  bool quiet = false;                       // -q
  bool verbose = false;                     // --verbose
  std::string log_dir;                      // --log-dir: one file a rank, and one of all
  bool hand_on_stdin = false;               // --stdin: rank 0 reads kolorun's standard input
  ClusterJobs cluster;                      // --cluster: each rank is a task
  int cluster_port = 2222;                  // --cluster-port: of the first task on each host
  std::vector<std::string> exported;        // -x NAME or -x NAME=VALUE
  std::vector<std::string> mpi_args;        // --mpi-args, split as a shell would
  bool check_network = false;               // --check-network: alone, or before the program
  std::int64_t gradient_bytes = 102228128;  // --gradient-bytes: ResNet-50's in f32
  double step_ms = 250;                     // --step-ms
  bool json = false;                        // --json: of --check-network's report
  bool show_allotment = false;              // --show-allotment
  bool stop_here = false;                   // --stop-here: no job, but the end of those whose ranks are here
  double wait_s = 25;                       // --wait: for them
  bool help = false, version = false, check_build = false;
  std::vector<std::string> program;  // its name and arguments: what starts with the first word that is no
                                     // option, or stands after --; empty only with --check-network
};

/// Throws InvalidArgumentError or NotFoundError (hostfile) with the one line that the user needs. With
/// --help, --version or --check-build nothing else needs to be there, with --show-allotment no program.
/// environment, ask: find_allotment's.
Options parse_command_line(int argc, const char* const* argv, const Environment& environment, const Ask& ask);

/// True if --mpi-args name hosts: mpirun then places the ranks where kolorun has not been told.
bool mpi_args_name_hosts(const Options& options);

/// What --help prints.
std::string help_text();

}  // namespace kolo::launcher
