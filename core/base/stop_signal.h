// SIGTERM, SIGINT (Ctrl-C) and SIGUSR1 as a request to stop after the current step, SIGUSR2 as one to write
// down what goes on.
// The handlers set flags, which others read.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace kolo {

/// Installs the handlers; again changes nothing. The second SIGTERM or SIGINT exits at once with 128 + its
/// number. A SIGINT that is ignored, as in a shell's background, or has a handler, stays so. To be called on
/// the main thread, which gets a stack of its own for signals: a handler on the stack of a thread that
/// runs oneDNN's kernels can destroy memory. A program's other handlers need SA_ONSTACK for the same reason.
void install_stop_signals();
/// For the threads that compute beside the main thread: they leave all signals of this file to that one.
void block_stop_signals();
/// True since the first SIGTERM, SIGINT or SIGUSR1. Any thread.
bool stop_signal_received();
/// Since the first SIGTERM; nothing if there was none. Any thread.
std::optional<std::chrono::milliseconds> time_since_sigterm();
/// As SIGUSR1: a request to stop after the current step. Any thread.
void request_stop();
/// Under kolorun writes kHostGoesMarker, the name of this host and a newline to stderr, which kolorun takes
/// out of the stream: an elastic job goes on without it. Any thread.
void tell_host_goes(const std::string& host);
inline constexpr char kHostGoesMarker[] = "\x01kolo host-goes ";
/// install_stop_signals() writes it to stderr, with a newline, where KOLO_JOB_START is set: kolorun takes it
/// out, and sends no request for a purpose of its own before.
inline constexpr char kTakesRequestsMarker[] = "\x01kolo takes-requests";
/// The value that `kolorun --stop-here` queues with its SIGUSR1: it stands for such a notice.
inline constexpr int kHostGoesValue = 0x6b6f;
/// The training step this process has completed, for whoever reports its death: under kolorun
/// (KOLO_LAUNCHER=kolorun) the first SIGTERM writes kLastStepMarker, the number and a newline to stderr,
/// which kolorun takes out of the stream. With KOLO_JOB_START a blank and the milliseconds since that step
/// follow the number, and rank 0 writes such a line while it trains, too, four times a second at most: a rank
/// that is killed tells nothing any more. Any thread.
void report_completed_step(std::int64_t step);
/// Writes kLastStepMarker and `step` as above, under kolorun alone, and ` of ` with the step at which the
/// training is to end, where that is known (`of` over 0). Any thread.
void tell_last_step(std::int64_t step, std::int64_t of = 0);
/// The last one that was reported; −1 if none was. Any thread.
std::int64_t last_completed_step();
inline constexpr char kLastStepMarker[] = "\x01kolo last-step ";
/// Forgets an earlier signal: for a process that starts another training after one that was stopped.
void clear_stop_signal();

/// SIGUSR2 from now on asks for a record of what this process does, and a SIGTERM that would have ended it at
/// once lets it write one first: whoever installs this polls both, and calls end_by_sigterm(). A second
/// SIGTERM exits at once with 128 + 15. To be called on the main thread.
void install_record_signals();
/// SIGTERM ends the process again, unless somebody else handles it by now; SIGUSR2 stays without effect.
void remove_record_signals();
/// True once for each SIGUSR2.
bool take_record_request();
/// True since the first SIGTERM that nobody but install_record_signals() handles.
bool sigterm_received();
[[noreturn]] void end_by_sigterm();
/// True since the first SIGTERM or SIGINT that is handled by this file: the process has not long to live. Any
/// thread.
bool is_about_to_end();

}  // namespace kolo
