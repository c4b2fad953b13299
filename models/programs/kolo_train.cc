// kolo-train: trains a model of the zoo, or evaluates one, on every rank of the job.
#include <fmt/core.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <exception>

#include <kolo/collectives/job/init.h>
#include <kolo/core/base/exit_code.h>
#include <kolo/core/base/process.h>
#include <kolo/core/base/stop_signal.h>
#include <kolo/models/programs/continuation.h>
#include <kolo/models/programs/evaluator.h>
#include <kolo/models/programs/predictions.h>
#include <kolo/models/programs/shared_errors.h>
#include <kolo/models/programs/train_options.h>
#include <kolo/models/programs/trainer.h>
#include <kolo/models/programs/training_config.h>

namespace kolo::models {
namespace {

constexpr int kFailed = 1;
constexpr int kBadCommandLine = 2;

// What every rank has found wrong, rank 0 says; all have left before the first exit code ends the job.
int fail_together(const char* text, int exit_code) {
  if (process().rank == 0) fmt::print(stderr, "kolo-train: {}\n", text);
  if (process().rank == 0) kolo::tell_last_step(std::max<std::int64_t>(0, kolo::last_completed_step()));
  shutdown();
  return exit_code;
}

// What the disk does not take is an error like any other.
int with_output_written(int exit_code) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return exit_code;
  fmt::print(stderr, "kolo-train: not all of the output could be written\n");
  return exit_code == 0 ? kFailed : exit_code;
}

int run(int argc, char** argv) {
  const TrainOptions options = parse_train_options(argc, argv, read_folder_config);
  const bool speaks = process().rank == 0;
  if (options.help || options.version) {
    if (speaks && options.help) fmt::print("{}", train_help());
    else if (speaks) fmt::print("kolo-train {}\n", KOLO_VERSION);
    return 0;
  }
  if (options.evaluate) {
    evaluate(options);
    return 0;
  }
  if (options.predicts()) {
    if (options.prompt) continue_text(options);
    else predict(options);
    return 0;
  }
  if (!options.log_dir.empty()) propose_record_folder(options.log_dir);
  install_stop_signals();  // before the data is read: a request to stop is heard from here on
  shared_errors(
      [] { kolo::detail::stopped_exit_code(); });  // before the training: it must not fail at the end
  train(options);
  return exit_code();
}

}  // namespace
}  // namespace kolo::models

int main(int argc, char** argv) {
  using namespace kolo::models;
  try {
    kolo::init(&argc, &argv);
  } catch (const std::exception& error) {
    return fail_together(error.what(), kFailed);
  }
  try {
    std::signal(SIGXFSZ, SIG_IGN);  // a file size limit is an error of the write that meets it
    return with_output_written(run(argc, argv));
  } catch (const UsageError& error) {
    return fail_together(error.what(), kBadCommandLine);
  } catch (const SharedError& error) {
    return fail_together(error.what(), kFailed);
  } catch (const std::exception& error) {
    fmt::print(stderr, "kolo-train: {}{}\n",
               kolo::process().size > 1 ? fmt::format("rank {}: ", kolo::process().rank) : "", error.what());
    return kFailed;
  }
}
