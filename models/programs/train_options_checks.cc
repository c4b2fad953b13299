#include <fmt/format.h>

#include <filesystem>
#include <string_view>
#include <utility>

#include <kolo/core/base/process.h>
#include <kolo/core/base/text.h>
#include <kolo/models/models.h>
#include <kolo/models/programs/best_value.h>
#include <kolo/models/programs/command_words.h>
#include <kolo/models/programs/train_options_internal.h>
#include <kolo/models/programs/train_switches.h>
#include <kolo/optimizer/registry.h>

namespace kolo::models {
namespace {

namespace po = boost::program_options;

void check_name(const char* what, const std::string& name, const std::vector<std::string>& known) {
  for (const auto& candidate : known)
    if (candidate == name) return;
  throw UsageError(fmt::format("there is no {} \"{}\"{} (known: {})", what, name, did_you_mean(name, known),
                               joined(known)));
}

// What follows from evaluations during the training.
void check_evaluations(const TrainOptions& options, const po::variables_map& values) {
  if (is_given(values, "keep-best") && !is_evaluation_metric(options.keep_best))
    throw UsageError(
        fmt::format("--keep-best \"{}\" is not valid; allowed: {}", options.keep_best, evaluation_metrics()));
  for (const char* name : {"early-stopping", "keep-best"})
    if (is_given(values, name) && !options.evaluate && !options.predicts() && !options.validate_every)
      throw UsageError(fmt::format("--{} needs --validate-every, the steps between two evaluations", name));
  if (!options.keep_best.empty() && options.checkpoint_dir.empty())
    throw UsageError("--keep-best needs --checkpoint-dir, the folder of the checkpoints");
  if (is_given(values, "histogram-steps") && options.tensorboard.empty())
    throw UsageError("--histogram-steps needs --tensorboard, the folder of the histograms");
}

// A mistyped name is told as such, whatever else is missing with the folder.
void check_folder_to(const std::string& folder, const char* work) {
  if (!std::filesystem::exists(folder))
    throw UsageError(fmt::format("there is no folder {}: nothing to {}", folder, work));
}

void check_names(const TrainOptions& options, const po::variables_map& values) {
  if (options.model.empty()) {
    const std::string folder = given(values, "checkpoint-dir").value_or("");
    if (options.evaluate && !folder.empty()) check_folder_to(folder, "evaluate");
    const std::string why = folder.empty() ? ""
                            : std::filesystem::exists(folder)
                                ? ", and no config.json in " + folder + " names it"
                                : ", and there is no folder " + folder;
    throw UsageError(
        fmt::format("--model is missing{}; --model must be one of {}", why, joined(registered_models())));
  }
  for (const char* name :
       {"checkpoint-dir", "init-from", "init-names", "log-dir", "trace", "tensorboard", "data"})
    if (given(values, name) == "")
      throw UsageError(fmt::format("--{} \"\" is not valid; it must name a file or folder", name));
  check_name("model", options.model, registered_models());
  check_name("optimizer", options.optimizer, registered_optimizers());
}

void check_lengths(const TrainOptions& options, const po::variables_map& values) {
  if (values.count("steps") > 0 && values.count("epochs") > 0)
    throw UsageError("--steps and --epochs were both given; give the length of the training in one of them");
  if (values.count("batch-size") > 0 && values.count("global-batch") > 0)
    throw UsageError("--batch-size and --global-batch were both given; give the size in one of them");
  if (options.global_batch > 0 && options.global_batch < process().size)
    throw UsageError(
        fmt::format("--global-batch {} is less than {} ranks", options.global_batch, process().size));
  if (values.count("rescale-steps") > 0 && options.scale_rate == RateRule::none)
    throw UsageError("--rescale-steps needs --scale-rate linear or sqrt");
  if (options.save_steps && options.checkpoint_dir.empty())
    throw UsageError("--save-steps needs --checkpoint-dir, the folder to save to");
}

void check_folders(const TrainOptions& options, const po::variables_map& values) {
  if (options.evaluate && options.checkpoint_dir.empty())
    throw UsageError("--evaluate needs --checkpoint-dir, the folder of the checkpoint to evaluate");
  if (!options.init_names.empty() && options.init_from.empty())
    throw UsageError("--init-names needs --init-from, the file whose names it tells");
  if (options.evaluate && !options.init_from.empty())
    throw UsageError("--init-from is for a training; --evaluate takes the weights of --checkpoint-dir");
  for (const char* name : kTrainingSwitches)
    if (options.evaluate && is_given(values, name))
      throw UsageError(
          fmt::format("--{} is of a training, and --evaluate trains nothing; leave one of them out", name));
  if (values.count("keep") > 0 && options.checkpoint_dir.empty())
    throw UsageError("--keep needs --checkpoint-dir, the folder of the checkpoints");
}

// What the model and the optimizer take.
void check_taken(const TrainOptions& options, const po::variables_map& values) {
  const Model& model = find_model(options.model);
  for (const char* name : {"layers", "width", "heads", "context"})
    if (values.count(name) > 0 && !model.takes(name))
      throw UsageError(
          fmt::format("--{} cannot be chosen for --model {}; leave it out", name, options.model));
  if (options.normalize && model.input == DType::i32)
    throw UsageError(fmt::format(
        "--normalize is for images and tables, and {} learns from a text; leave it out", options.model));
  if (!options.loss.empty() && model.input == DType::i32)
    throw UsageError(fmt::format(
        "--loss is for images, arrays and tables, and {} learns from a text; leave it out", options.model));
  if (options.average_decay && options.backward_passes > 1)
    throw UsageError(
        "--average-decay moves the averages with each batch, and --backward-passes makes a step of several; "
        "leave one of them out");
  const OptimizerTraits traits = optimizer_traits(options.optimizer);
  if (values.count("momentum") > 0 && !traits.takes_momentum)
    throw UsageError(
        fmt::format("--momentum is of momentum, nesterov and lars, and --optimizer is {}; leave it out",
                    options.optimizer));
}

}  // namespace

void check_prediction(const po::variables_map& values, const std::optional<FolderConfig>& found) {
  for (const auto& [name, of] :
       {std::pair("top", "predict"), {"output", "predict"}, {"length", "prompt"}, {"temperature", "prompt"}})
    if (is_given(values, name) && !is_given(values, of))
      throw UsageError(fmt::format("--{} needs --{}", name, of));
  const bool continues = is_given(values, "prompt");
  const std::string mode = continues ? "--prompt" : "--predict";
  if (!continues && !is_given(values, "predict")) return;
  if (!continues && values["predict"].as<std::vector<std::string>>().empty())
    throw UsageError(
        "--predict names no file; pictures, folders, tables or arrays follow it, or - for names on standard "
        "input");
  if (continues && is_given(values, "predict"))
    throw UsageError("--predict and --prompt were both given; leave one of them out");
  for (const char* name : {"evaluate", "data", "init-from", "log-dir", "augment"})
    if (is_given(values, name))
      throw UsageError(fmt::format("--{} and {} do not go together; leave one of them out", name, mode));
  for (const char* name : kTrainingSwitches)
    if (is_given(values, name) && !(continues && std::string_view(name) == "seed"))
      throw UsageError(
          fmt::format("--{} is of a training, and {} trains nothing; leave one of them out", name, mode));
  if (!is_given(values, "checkpoint-dir"))
    throw UsageError(fmt::format("{} needs --checkpoint-dir, the folder of the trained model", mode));
  if (!found)
    check_folder_to(values["checkpoint-dir"].as<std::string>(),
                    continues ? "continue the prompt with" : "predict with");
  if (!found)
    throw UsageError(fmt::format(
        "{}: there is no checkpoint with a config.json in {}, which kolo-train writes; train there first",
        mode, values["checkpoint-dir"].as<std::string>()));
  const bool is_text = find_model(found->model).input == DType::i32;
  if (continues != is_text)
    throw UsageError(
        fmt::format("{} is not for the model in {}, {}; {}", mode, found->folder, found->model,
                    is_text ? "it continues a text: give --prompt" : "give --predict and files"));
  if (found->label_kind == LabelKind::numbers && is_given(values, "top"))
    throw UsageError(
        fmt::format("--top is of classes, and the model in {} finds numbers; leave it out", found->folder));
  const std::string output = given(values, "output").value_or(".csv");
  if (!output.ends_with(".csv") && !output.ends_with(".jsonl"))
    throw UsageError(
        fmt::format("--output \"{}\" is not valid; its name must end in .csv or .jsonl", output));
}

void check_ended(const std::vector<std::string>& ended, const po::variables_map& values) {
  const bool trains =
      !is_given(values, "evaluate") && !is_given(values, "predict") && !is_given(values, "prompt");
  for (const std::string& name : ended) {
    if (is_given(values, name.c_str()))
      throw UsageError(fmt::format("--{} and --no-{} were both given; leave one of them out", name, name));
    if (!trains && name != "skip-damaged")
      throw UsageError(fmt::format("--no-{} is of a training; leave it out", name));
  }
}

void check_combination(const TrainOptions& options, const po::variables_map& values) {
  check_names(options, values);
  check_lengths(options, values);
  check_evaluations(options, values);
  check_folders(options, values);
  check_taken(options, values);
}

}  // namespace kolo::models
