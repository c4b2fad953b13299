// An elastic job's hosts from start to start: who is there, where the next start goes, and what has ended the
// last one.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <kolo/launcher/child.h>
#include <kolo/launcher/host_pool.h>
#include <kolo/launcher/host_watch.h>
#include <kolo/launcher/job_result.h>
#include <kolo/launcher/mpirun_command.h>
#include <kolo/launcher/options.h>
#include <kolo/launcher/slurm_job.h>
#include <kolo/launcher/start_wait.h>

namespace kolo::launcher {

/// One thread.
class ElasticHosts {
 public:
  /// The options are those of the command line, with the first list of hosts. The queue outlives this object.
  ElasticHosts(const Options& options, const Surroundings& found, SignalQueue& signals, Say say);

  /// Waits until there is room for the least ranks, says where the job goes on, and puts hosts and ranks of
  /// the next start into `options`, their machines into `found`. Otherwise the exit code with which it has
  /// given up, or a signal has ended the waiting; it is told.
  std::optional<int> prepare(Options& options, Surroundings& found);

  /// Why a job has ended that is to go on.
  enum class Cause {
    program,  // nothing that hosts explain, or the ranks are killed on every host
    host,     // one was lost, or could not start the ranks
    ranks,    // a host has lost ranks before, and others take its place for a while
    growth,   // the ranks were stopped for it
    notice    // they were stopped since a host is about to go
  };
  Cause look_at(const JobResult& result, int stopped_exit_code);
  /// True in a start that was the first one with its hosts: what it cannot do, the one before could.
  bool has_grown() const { return !added_.empty(); }
  /// Hosts that the last start has lost, or was stopped to leave, as look_at() has found.
  const std::vector<std::string>& lost() const { return lost_; }

  /// True if a rank has told a step in an earlier start.
  bool has_completed_steps() const { return last_step_.has_value(); }

  /// While a job runs. For poll: readable when see_news() has something to read.
  int fd() const { return watch_.fd(); }
  pid_t watching_process() const { return watch_.pid(); }
  /// Takes what is known of the hosts by now; true if that is new.
  bool see_news();
  /// `node3 is there`, of hosts that the job could go on with beside those in use; "" for none.
  std::string newcomers() const;
  /// True if the ranks are to be stopped, to go on with more. May ask Slurm, which serves a whole site: call
  /// it only where the ranks could stop.
  bool is_to_grow();
  /// After a stop that a batch system may have asked for: true, and it is told, where Slurm ends the job
  /// because a node has failed.
  bool is_ended_by_slurm() const;

  /// Sentences that the user has not been told.
  std::vector<std::string> take_warnings();

 private:
  using Clock = std::chrono::steady_clock;

  void see_list();
  bool drop_hosts_that_left(const std::vector<Host>& hosts);
  bool may_wait_for_hosts();
  std::vector<std::string> lost_hosts(const JobResult& result);
  std::optional<int> wait_for_hosts(std::vector<Host>& chosen);
  void tell_start(const std::vector<Host>& before, const std::vector<Host>& chosen);
  void find_machines_of(const Options& options, Surroundings& found);

  const ElasticOptions elastic_;
  SignalQueue& signals_;
  const Say say_;
  std::optional<SlurmJob> slurm_;  // where its daemons start the ranks
  HostPool pool_;
  HostWatch watch_;
  std::set<std::string> left_job_;  // hosts that Slurm has taken away
  std::set<std::string> gone_;      // hosts that were lost and are not used again so far
  std::vector<std::string> warnings_;
  bool has_list_ = false;
  bool started_ = false;
  int restarts_ = 0;
  std::string cause_;               // of the next start, for its line
  std::vector<std::string> lost_;   // with the last start
  std::vector<std::string> added_;  // hosts that the last start was the first one for
  int ranks_before_growth_ = 0;     // to those
  bool grows_ = false, has_waited_ = false;
  std::optional<std::int64_t> last_step_;
  Clock::time_point standing_since_ = {};
  std::map<std::string, int> machines_;  // as find_machines has numbered them
};

}  // namespace kolo::launcher
