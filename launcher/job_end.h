// How a job has ended: what its launcher's words say of that, told on stderr and handed to whoever starts
// again.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <kolo/launcher/options.h>
#include <kolo/launcher/output.h>
#include <kolo/launcher/rank_requests.h>

namespace kolo::launcher {

/// One job. The options and the router outlive it. One thread.
class JobEnd {
 public:
  JobEnd(const Options& options, std::string hostname, OutputRouter& router)
      : options_(options), hostname_(std::move(hostname)), router_(router) {}

  /// The host with which the launcher has lost contact, else one that the ranks say is gone; "" for none.
  std::string lost_host() const;
  /// A line for each rank of that host; a second call says nothing.
  void tell_lost_host();
  /// Says the line; the first one is how the job ended.
  void tell(const std::string& line);
  /// The first rank that has failed, as far as the launcher's words tell. is_forced: the ranks were ended
  /// without waiting for them.
  void tell_failed_rank(int exit_code, bool is_forced);
  /// Why the ranks did not start. False if they did.
  bool tell_start_failure();
  /// Says what a request to stop has done, unless the ranks have taken it. The exit code for the launcher's.
  /// is_stop: they were made by who wants the job to end, and not to go on elsewhere.
  int tell_effect(RankRequests::Effect effect, bool is_stop, int launchers_code);
  /// The job's own exit code, for the launcher's.
  int exit_code(int launchers_code) const;

  /// The first line that told how it ended; "" for none.
  const std::string& first_line() const { return first_line_; }
  /// The launcher's code, but that of a stop where the ranks have stopped and mpirun returns that of one
  /// which it has killed behind that.
  int code_of_stop(int launchers_code) const;
  /// The host on which SIGKILL or SIGBUS has ended a rank, as where memory is short or broken; "" for none.
  std::string host_of_killed_rank() const;
  /// Hosts on which the ranks could not be started.
  std::vector<std::string> hosts_without_start() const;

 private:
  void tell_gone(int rank, const std::string& host);
  int rank_of(int task, const std::string& host) const;
  std::string host_of(int rank) const;

  const Options& options_;
  const std::string hostname_;
  OutputRouter& router_;
  bool loss_told_ = false;
  std::string first_line_;
};

}  // namespace kolo::launcher
