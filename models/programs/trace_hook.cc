#include <kolo/models/programs/trace_hook.h>

#include <fstream>

#include <kolo/core/base/error.h>
#include <kolo/core/base/process.h>

namespace kolo::models {
namespace {

// The first step compiles, the second still touches memory for the first time: the third is what steps are
// like.
constexpr int kTracedRun = 3;

}  // namespace

SessionRunArgs TraceHook::before_run(RunContext&) {
  SessionRunArgs args;
  if (++runs_ <= kTracedRun) args.options.trace_level = TraceLevel::full_trace;
  return args;
}

void TraceHook::after_run(RunContext&, const RunValues& values) {
  if (values.trace == nullptr || runs_ > kTracedRun) return;
  std::ofstream out(file_, std::ios::trunc);
  out << chrome_trace_json(*values.trace, process().rank) << '\n';
  if (!out.flush()) throw FailedPreconditionError("cannot write the trace {}", file_);
}

}  // namespace kolo::models
