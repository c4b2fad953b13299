// What an elastic job asks Slurm about the job that it runs in.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <kolo/launcher/allotment.h>
#include <kolo/launcher/host_probe.h>
#include <kolo/launcher/hosts.h>

namespace kolo::launcher {

/// Each answer is one run of squeue, scontrol or sinfo. One thread.
class SlurmJob {
 public:
  /// restarts: how often Slurm has started the job again.
  SlurmJob(std::string job, int restarts, Ask ask)
      : job_(std::move(job)), restarts_(restarts), ask_(std::move(ask)) {}

  /// Where slurmd listens on these hosts: the port of slurm.conf, and for each host the address and the port
  /// that Slurm has for it.
  Agent agent(const std::vector<Host>& hosts) const;

  /// The hosts that the job has now; nothing if Slurm does not answer. In a job with --no-kill Slurm takes a
  /// host away once it counts as down (SlurmdTimeout, or an operator says so), and never gives it back.
  std::optional<std::vector<Host>> hosts() const;

  /// After a signal to stop: whether Slurm ends the job because one of these hosts, which the ranks have
  /// lost, counts as down. Without --no-kill it does, and mostly queues the job again.
  bool is_ended_by(const std::vector<std::string>& lost) const;

 private:
  std::string job_;
  int restarts_;
  Ask ask_;
};

}  // namespace kolo::launcher
