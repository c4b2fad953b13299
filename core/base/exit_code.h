// The exit code of a program that trains.
#pragma once

namespace kolo {

/// For `return exit_code();` at the end of main: 0, or KOLO_STOPPED_EXIT_CODE (0 to 125; if unset 0, with
/// KOLO_REQUEUE=1 75) where a request to stop (SIGTERM, SIGINT, SIGUSR1) ended this process's last
/// MonitoredTrainingSession before its hooks did. All ranks return the same. A batch system can then tell a
/// job that is to go on from one that is done. Throws InvalidArgumentError for another
/// KOLO_STOPPED_EXIT_CODE, or KOLO_REQUEUE. Any thread, once the session is closed.
int exit_code();

namespace detail {
/// Of a job that is to be started again: EX_TEMPFAIL of sysexits.h.
inline constexpr int kTemporaryFailure = 75;
/// Whether a request to stop ended this process's last training. Any thread.
bool was_training_stopped();
/// KOLO_STOPPED_EXIT_CODE. Throws as exit_code().
int stopped_exit_code();
/// The session, or Python's should_stop(), says how the training ended, at which step (-1 if it does not know
/// one). Under kolorun rank 0 reports the step of a stop.
void note_end_of_training(bool stopped_on_request, long long step);
/// The step at which the training is to end, which is told with that one. 0: not known. Any thread.
void note_planned_steps(long long steps);
long long planned_steps();
}  // namespace detail

}  // namespace kolo
