// One run of a job: mpirun, or srun, its output and its signals, from start to end.
#pragma once

#include <kolo/core/base/stop_time.h>
#include <kolo/launcher/child.h>
#include <kolo/launcher/elastic_hosts.h>
#include <kolo/launcher/job_result.h>
#include <kolo/launcher/mpirun_command.h>
#include <kolo/launcher/options.h>
#include <kolo/launcher/output_files.h>

namespace kolo::launcher {

/// Runs the job and forwards its output and signals until it has ended; tells on stderr which rank died.
/// Every wait for mpirun to end has a deadline once the job was asked to stop or has lost a rank.
/// stop_time: when the ranks are asked to stop by themselves. files: those of --log-dir, or none. elastic: of
/// an elastic job, which says when the ranks are to stop so that it can grow. Throws NotFoundError if mpirun
/// or srun cannot be started.
JobResult run_job(const Options& options, const Surroundings& found, detail::StopTime& stop_time,
                  SignalQueue& signals, OutputFiles* files, ElasticHosts* elastic = nullptr);

}  // namespace kolo::launcher
