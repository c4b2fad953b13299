#include <kolo/core/training/hooks.h>

#include <fmt/format.h>

#include <fstream>
#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/core/base/log.h>
#include <kolo/core/base/process.h>
#include <kolo/core/training/global_step.h>

namespace kolo {

ProfilerHook::ProfilerHook(ProfilerOptions options)
    : options_(std::move(options)), timer_(options_.save_secs, options_.save_steps) {}

void ProfilerHook::begin(Graph& graph) {
  require_global_step(graph, "ProfilerHook");
  timer_ = StepTimer(options_.save_secs, options_.save_steps);
}

SessionRunArgs ProfilerHook::before_run(RunContext& context) {
  SessionRunArgs args;
  // As in TensorFlow: counted from the step before the first run, which itself is not traced.
  const bool first = !timer_.last_step();
  if (first) timer_.fired(*context.global_step());
  is_due_ = !first && timer_.is_due(*context.global_step() + 1);
  if (is_due_) args.options.trace_level = TraceLevel::full_trace;
  return args;
}

void ProfilerHook::after_run(RunContext& context, const RunValues& values) {
  const std::int64_t step = *context.global_step();
  if (!is_due_ || values.trace == nullptr) return;
  timer_.fired(step);
  const std::string path =
      fmt::format("{}timeline-{}.json", options_.output_dir.empty() ? "" : options_.output_dir + '/', step);
  log_info("Saving timeline for {} into '{}'.", step, path);
  std::ofstream file(path, std::ios::trunc);
  file << chrome_trace_json(*values.trace, process().rank) << '\n';
  if (!file.flush()) throw FailedPreconditionError("ProfilerHook: {} cannot be written", path);
}

}  // namespace kolo
