#include <kolo/models/programs/profile_hook.h>

#include <kolo/core/kernels/parallel.h>

namespace kolo::models {
namespace {

// The first step compiles, the second still touches memory for the first time.
constexpr std::int64_t kFirstRun = 3;
constexpr double kSecondsForThePeak = 1;

}  // namespace

bool ProfileHook::measures() const { return runs_ >= kFirstRun && profiler_.steps() < steps_; }

SessionRunArgs ProfileHook::before_run(RunContext&) {
  ++runs_;
  SessionRunArgs args;
  if (measures()) args.options.trace_level = TraceLevel::full_trace;
  return args;
}

void ProfileHook::after_run(RunContext& context, const RunValues& values) {
  // Others may have asked for a trace of any run.
  if (values.trace == nullptr || !measures()) return;
  if (work_.empty()) {
    const SessionRunArgs& args = context.original_args();
    work_ = step_work(*graph_, args.fetches, args.feeds);
  }
  profiler_.add(*values.trace);
  if (profiler_.steps() == steps_) finish();
}

void ProfileHook::end(Session&) { finish(); }

void ProfileHook::finish() {
  if (told_) return;
  told_ = true;
  CorePeak peak = measure_peak(kSecondsForThePeak);
  peak.gflops *= intra_op_threads();
  peak.GBps *= intra_op_threads();
  tell_(profiler_.profile(work_, peak));
}

}  // namespace kolo::models
