// Having a batch system start a stopped job again.
#pragma once

#include <kolo/core/base/requeue.h>
#include <kolo/launcher/child.h>
#include <kolo/launcher/options.h>

namespace kolo::launcher {

/// Asks the batch system to start this job again, tells what it said, and then waits to be ended, at most
/// 120 s. Returns kolorun's exit code: the stopped one; 99 for
/// Grid Engine, which reads it as the request.
int requeue(const Options& options, const detail::StoppedAt& where, SignalQueue& signals);
/// The same after a waiting for hosts that a request has ended, or that has given up in an elastic job, which
/// then gets others. Without --requeue, and after Ctrl-C, a user's, it returns `code`, with which the waiting
/// ended.
int requeue_unless_ended(const Options& options, const detail::StoppedAt& where, SignalQueue& signals,
                         int code);

}  // namespace kolo::launcher
