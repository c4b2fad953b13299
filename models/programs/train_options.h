// kolo-train's command line.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <kolo/core/passes/graph_options.h>
#include <kolo/models/data.h>
#include <kolo/models/models.h>
#include <kolo/models/programs/kept_switches.h>
#include <kolo/models/programs/rate_scale.h>
#include <kolo/models/step_shares.h>

namespace kolo::models {

enum class DeviceChoice { automatic, cpu, gpu };
enum class Schedule { constant, linear, cosine, step };

/// "fp16", "powersgd:4", "topk:0.05".
struct CompressionChoice {
  enum class Kind { none, fp16, bf16, powersgd, topk };
  Kind kind = Kind::none;
  double parameter = 0;  // powersgd: rank; topk: ratio
};

/// "test_loss:5".
struct EarlyStoppingChoice {
  std::string metric;  // "": none
  std::int64_t patience = 0;
};

struct TrainOptions {
  std::string model;
  ModelSize size;                               // layers, width and heads; classes are the data's
  std::optional<std::int64_t> context;          // tokens of a sample
  std::optional<std::string> data;              // a folder, a file, or "generated"
  std::string target;                           // of a table: the labels' columns; "": found
  std::vector<std::string> ignore;              // of a table: columns left out
  MissingCells missing = MissingCells::refuse;  // of a table: its empty cells
  std::string loss;                             // "": the usual one of the data
  bool skip_damaged = false;                    // pictures that cannot be decoded are left out
  std::string augment;                          // as augmentation_from takes it; "": images stay as they are
  bool normalize = false;
  std::string optimizer = "adam";
  std::optional<double> learning_rate;  // set by parse_train_options: without the option the optimizer's own
  double momentum = 0.9;
  std::optional<double> weight_decay;
  Schedule schedule = Schedule::constant;
  std::int64_t warmup = 0;  // steps
  std::optional<double> clip_norm;
  std::optional<double> average_decay;  // of the variables' moving averages; none: there are none
  int backward_passes = 1;
  CompressionChoice compression;
  bool sharded = false;
  std::int64_t batch_size = 64;   // per rank and backward pass
  std::int64_t global_batch = 0;  // of all ranks and passes of a step, whatever their number; 0: batch_size
  EpochEnd epoch_end = EpochEnd::drop;
  RateRule scale_rate = RateRule::none;
  std::int64_t rescale_steps = 100;
  std::optional<std::int64_t> steps;  // in all, counted from step 0; without it: epochs
  std::int64_t epochs = 10;
  std::string checkpoint_dir;  // "": nothing is saved
  std::optional<std::int64_t> save_steps;
  std::string init_from;                       // "": the initialisers
  std::string init_names;                      // "": tensors are called as the variables
  bool keep_going = false;                     // with a loss that is no number
  std::optional<std::int64_t> check_drift;     // steps between two comparisons of the ranks' weights; 0: none
  int keep = 5;                                // checkpoints; 0: all
  std::optional<std::int64_t> validate_every;  // steps
  std::optional<std::int64_t> log_steps;       // steps between two reports; none: by time
  std::int64_t seed = 1;
  Precision precision = Precision::automatic;
  DeviceChoice device = DeviceChoice::automatic;
  int threads = 0;                     // 0: OMP_NUM_THREADS, else cores ÷ local ranks
  std::string log_dir;                 // "": no log files
  std::string tensorboard;             // a folder for event files; "": none
  std::int64_t histogram_steps = 500;  // between two histograms of the weights in them; 0: none
  EarlyStoppingChoice early_stopping;
  std::string keep_best;                // the metric; "": the newest checkpoints alone
  std::string trace;                    // "": no trace
  std::optional<std::int64_t> profile;  // steps to measure
  bool evaluate = false;
  std::vector<std::string> predict;   // pictures, folders, tables, arrays; "-": names on standard input
  std::optional<std::int64_t> top;    // classes or labels told of a sample; none: one class, or all labels
  std::string output;                 // "": standard output
  std::optional<std::string> prompt;  // that a text model continues
  std::int64_t length = 200;          // tokens behind it
  double temperature = 1;             // 0: the likeliest token each time
  bool json = false;

  std::string command;                // as it was given
  Switches switches;                  // what a folder keeps of it, with what it has kept before
  std::optional<FolderConfig> found;  // of checkpoint_dir

  bool help = false;
  bool version = false;

  bool predicts() const { return !predict.empty() || prompt; }
};

/// Switches that are not given come from the checkpoint folder, as far as it has them: `in_folder` reads it,
/// and throws what it finds wrong. Throws UsageError with one line that names the option, what was found and
/// what would be right.
TrainOptions parse_train_options(
    int argc, const char* const* argv,
    const std::function<std::optional<FolderConfig>(const std::string& folder)>& in_folder);
/// Layers, width, heads and context of the model, as far as they can be chosen: what was chosen or is usual.
std::map<std::string, std::int64_t> sizes_of(const TrainOptions& options);
/// What --help prints.
std::string train_help();

}  // namespace kolo::models
