// Calls of the table of CUDA's functions as the checker sees them: counted, one of them failing on request,
// and what must not be ended by one clear line.
//
// KOLO_FAKE_CUDA_FAIL=k[:code]  call k, the first is 1, fails with this code of CUDA (700)
// KOLO_FAKE_CUDA_FAIL=name[:code]  each call of this function fails; "name ahead", of the thread that reads
//                               batches ahead alone
// KOLO_FAKE_CUDA_FAIL="first name[:code]"  the first call of this function alone fails
// KOLO_FAKE_CUDA_LOG=file       the names of all calls, one a line, written when the process ends; " ahead"
//                               behind those of the thread that reads batches ahead.
//                               cudaStreamQuery and cudaEventQuery are in neither: how often they are called
//                               is a matter of time
// KOLO_FAKE_CUDA_BREAK=what     as if kolo had a bug: "current", no device is made current; "transpose", the
//                               first matrix of a product has the wrong flag; "pinned", no memory is pinned;
//                               "staged", all of the host's memory is taken for pinned;
//                               "graph", the last piece of work of each graph is lost; "frame", the first
//                               graph of a GPU is launched in the place of those that have as many pieces of
//                               work; "late", each loses its last piece from its 50th launch on; "wait", no
//                               stream waits for another; "numbers", those of a step are not written; "slot",
//                               all are read where the one in the middle lies
#pragma once

#include <cuda_runtime_api.h>
#include <fmt/core.h>

#include <string>
#include <string_view>
#include <utility>

#include <kolo/core/base/mutex.h>

namespace kolo::fake_cuda {

/// Of all that the checker knows; each function of the table holds it.
Mutex& state_mutex();

/// Says what is wrong with the call that this thread is in, in one line on stderr, and ends the process.
[[noreturn]] void report(const std::string& what);
template <typename... Arguments>
[[noreturn]] void report(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  report(fmt::vformat(format, fmt::make_format_args(arguments...)));
}

/// Whether KOLO_FAKE_CUDA_BREAK asks for it.
bool breaks(std::string_view what);
/// Whether KOLO_FAKE_CUDA_REFUSE, a list with commas, does.
bool refuses(std::string_view what);
/// True where the call is the one that shall fail. The name is kept for report().
bool begins_failing(const char* name);
/// The call that this thread is in has another name in the log.
void rename_call(const char* name);
/// As cudaGetLastError has it: kept for this thread until asked for; a sticky one is every later call's.
cudaError_t remembered(cudaError_t code);
cudaError_t take_last_error();
bool context_is_lost();
cudaError_t code_of_failure();

/// What the table's functions keep elsewhere says so when it is loaded: what of it has not been given back,
/// "" where all has, is reported at the end of the process.
bool ask_at_the_end(std::string (*left)());
/// Called before a call fails.
bool finish_before_failures(void (*finish)());
/// Something else that must be given back by the end: one more, or less.
void count_object(int change);

/// Of this thread; reported where none has been made current.
int current_gpu();
void set_current_gpu(int gpu);

/// A call of the table: body() returns its code.
template <typename Body>
cudaError_t call(const char* name, const Body& body) {
  MutexLock lock(state_mutex());
  if (begins_failing(name)) return remembered(code_of_failure());
  return remembered(body());
}
/// A call that gives something back: it does so even where it fails, since real ones tell earlier work's
/// errors.
template <typename Body>
cudaError_t giving_back(const char* name, const Body& body) {
  MutexLock lock(state_mutex());
  const bool fails = begins_failing(name);
  if (context_is_lost()) return remembered(code_of_failure());
  body();
  return fails ? remembered(code_of_failure()) : cudaSuccess;
}

}  // namespace kolo::fake_cuda
