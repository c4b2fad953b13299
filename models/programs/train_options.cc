#include <kolo/models/programs/train_options.h>

#include <fmt/format.h>
#include <boost/program_options.hpp>

#include <filesystem>
#include <limits>
#include <sstream>
#include <string_view>
#include <utility>
#include <vector>

#include <kolo/core/base/batch_job.h>
#include <kolo/core/base/csv_line.h>
#include <kolo/core/base/error.h>
#include <kolo/core/base/process.h>
#include <kolo/core/base/text.h>
#include <kolo/models/models.h>
#include <kolo/models/programs/batch_folder.h>
#include <kolo/models/programs/best_value.h>
#include <kolo/models/programs/command_words.h>
#include <kolo/models/programs/kept_switches.h>
#include <kolo/models/programs/losses.h>
#include <kolo/models/programs/train_switches.h>
#include <kolo/models/samples.h>
#include <kolo/models/zoo.h>
#include <kolo/optimizer/registry.h>

namespace kolo::models {
namespace {

namespace po = boost::program_options;

std::optional<std::string> given(const po::variables_map& values, const char* name) {
  return values.count(name) > 0 ? std::optional(values[name].as<std::string>()) : std::nullopt;
}

std::int64_t count(const std::string& option, const std::string& text, std::int64_t least,
                   std::int64_t most) {
  const auto value = parse_int64(text);
  if (!value || *value < least || *value > most)
    throw UsageError(fmt::format("--{} \"{}\" is not valid; it must be a whole number from {} to {}", option,
                                 text, least, most));
  return *value;
}

// The value of the word among these.
template <typename T>
T one_of(const char* option, const std::string& text,
         std::initializer_list<std::pair<const char*, T>> values) {
  std::string words;
  for (auto value = values.begin(); value != values.end(); ++value) {
    if (text == value->first) return value->second;
    words += fmt::format("{}{}",
                         words.empty()               ? ""
                         : value + 1 == values.end() ? " or "
                                                     : ", ",
                         value->first);
  }
  throw UsageError(fmt::format("--{} \"{}\" is not valid; it must be {}", option, text, words));
}

DeviceChoice device_from(const std::string& text) {
  using enum DeviceChoice;
  return one_of<DeviceChoice>("device", text, {{"auto", automatic}, {"cpu", cpu}, {"gpu", gpu}});
}

Precision precision_from(const std::string& text) {
  if (const auto precision = precision_named(text)) return *precision;
  throw UsageError(
      fmt::format("--precision \"{}\" is not valid; it must be automatic, f32, tf32 or bf16", text));
}

MissingCells missing_from(const std::string& text) {
  if (text == "mean" || text == "zero" || text == "drop") return missing_cells_named(text);
  throw UsageError(fmt::format("--missing \"{}\" is not valid; it must be mean, zero or drop", text));
}

std::string loss_from(const std::string& text) {
  if (find_loss(text) != nullptr) return text;
  throw UsageError(fmt::format("--loss \"{}\" is not valid; it must be {}", text, loss_names()));
}

std::string augment_from(const std::string& text) {
  try {
    augmentation_from(text);
  } catch (const InvalidArgumentError& error) {
    throw UsageError(fmt::format("--augment {}", error.what()));
  }
  return text;
}

// Empty where the option is not given.
std::optional<double> number(const po::variables_map& values, const char* option, const char* range,
                             bool (*is_in_range)(double)) {
  const auto text = given(values, option);
  if (!text) return std::nullopt;
  const auto value = parse_double(*text);
  if (!value || !is_in_range(*value))
    throw UsageError(fmt::format("--{} \"{}\" is not valid; it must be a number {}", option, *text, range));
  return value;
}

std::optional<double> fraction(const po::variables_map& values, const char* option) {
  return number(values, option, "from 0 to less than 1",
                [](double value) { return value >= 0 && value < 1; });
}

std::optional<double> positive(const po::variables_map& values, const char* option) {
  return number(values, option, "above 0", [](double value) { return value > 0; });
}

Schedule schedule_from(const std::string& text) {
  using enum Schedule;
  return one_of<Schedule>("schedule", text,
                          {{"constant", constant}, {"linear", linear}, {"cosine", cosine}, {"step", step}});
}

EpochEnd epoch_end_from(const std::string& text) {
  return one_of<EpochEnd>("epoch-end", text, {{"drop", EpochEnd::drop}, {"fill", EpochEnd::fill}});
}

RateRule rate_rule_from(const std::string& text) {
  using enum RateRule;
  return one_of<RateRule>("scale-rate", text, {{"none", none}, {"linear", linear}, {"sqrt", root}});
}

CompressionChoice compression_from(const std::string& text) {
  using Kind = CompressionChoice::Kind;
  if (text == "none") return {};
  if (text == "fp16") return {Kind::fp16};
  if (text == "bf16") return {Kind::bf16};
  const auto colon = text.find(':');
  const std::string name = text.substr(0, colon);
  const std::string parameter = colon == std::string::npos ? "" : text.substr(colon + 1);
  if (const auto rank = parse_int64(colon == std::string::npos ? "1" : parameter);
      name == "powersgd" && rank && *rank >= 1 && *rank <= 1 << 20)
    return {Kind::powersgd, static_cast<double>(*rank)};
  if (const auto ratio = parse_double(colon == std::string::npos ? "0.01" : parameter);
      name == "topk" && ratio && *ratio > 0 && *ratio <= 1)
    return {Kind::topk, *ratio};
  throw UsageError(
      fmt::format("--compression \"{}\" is not valid; it must be none, fp16, bf16, powersgd, "
                  "powersgd:RANK, topk or topk:RATIO",
                  text));
}

void check_name(const char* what, const std::string& name, const std::vector<std::string>& known) {
  for (const auto& candidate : known)
    if (candidate == name) return;
  throw UsageError(fmt::format("there is no {} \"{}\"{} (known: {})", what, name, did_you_mean(name, known),
                               joined(known)));
}

EarlyStoppingChoice early_stopping_from(const std::string& text) {
  const std::size_t colon = text.find(':');
  const auto patience = parse_int64(colon == std::string::npos ? "" : text.substr(colon + 1));
  EarlyStoppingChoice choice{text.substr(0, colon), patience.value_or(0)};
  if (!is_evaluation_metric(choice.metric) || choice.patience < 1)
    throw UsageError(fmt::format(
        "--early-stopping \"{}\" is not valid; allowed: METRIC:N, as in test_loss:5, where METRIC is {}",
        text, evaluation_metrics()));
  return choice;
}

TrainOptions read_values(const po::variables_map& values) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max() / 4096;
  TrainOptions options;
  if (const auto text = given(values, "model")) options.model = *text;
  if (const auto text = given(values, "layers")) options.size.layers = count("layers", *text, 1, 1024);
  if (const auto text = given(values, "width")) options.size.width = count("width", *text, 1, 1 << 20);
  if (const auto text = given(values, "heads")) options.size.heads = count("heads", *text, 1, 1 << 20);
  if (const auto text = given(values, "context")) options.context = count("context", *text, 1, 1 << 20);
  options.data = given(values, "data");
  options.target = given(values, "target").value_or("");
  if (const auto text = given(values, "ignore")) options.ignore = names_in(*text);
  if (const auto text = given(values, "missing")) options.missing = missing_from(*text);
  if (const auto text = given(values, "loss")) options.loss = loss_from(*text);
  options.skip_damaged = values["skip-damaged"].as<bool>();
  if (const auto text = given(values, "augment")) options.augment = augment_from(*text);
  options.normalize = values["normalize"].as<bool>();
  if (const auto text = given(values, "optimizer")) options.optimizer = *text;
  options.learning_rate = positive(values, "learning-rate");
  if (const auto momentum = fraction(values, "momentum")) options.momentum = *momentum;
  options.weight_decay = fraction(values, "weight-decay");
  options.schedule = schedule_from(given(values, "schedule").value_or("constant"));
  if (const auto text = given(values, "warmup")) options.warmup = count("warmup", *text, 0, kMost);
  options.clip_norm = positive(values, "clip-norm");
  options.average_decay = fraction(values, "average-decay");
  if (const auto text = given(values, "backward-passes"))
    options.backward_passes = static_cast<int>(count("backward-passes", *text, 1, 1 << 20));
  options.compression = compression_from(given(values, "compression").value_or("none"));
  options.precision = precision_from(given(values, "precision").value_or("automatic"));
  options.sharded = values["sharded"].as<bool>();
  if (const auto text = given(values, "batch-size"))
    options.batch_size = count("batch-size", *text, 1, 1 << 24);
  if (const auto text = given(values, "global-batch"))
    options.global_batch = count("global-batch", *text, 1, std::int64_t{1} << 40);
  options.epoch_end = epoch_end_from(given(values, "epoch-end").value_or("drop"));
  options.scale_rate = rate_rule_from(given(values, "scale-rate").value_or("none"));
  if (const auto text = given(values, "rescale-steps"))
    options.rescale_steps = count("rescale-steps", *text, 1, kMost);
  if (const auto text = given(values, "steps")) options.steps = count("steps", *text, 1, kMost);
  if (const auto text = given(values, "epochs")) options.epochs = count("epochs", *text, 1, 1 << 30);
  if (const auto text = given(values, "checkpoint-dir")) options.checkpoint_dir = *text;
  if (const auto text = given(values, "save-steps"))
    options.save_steps = count("save-steps", *text, 1, kMost);
  if (const auto text = given(values, "init-from")) options.init_from = *text;
  if (const auto text = given(values, "init-names")) options.init_names = *text;
  options.keep_going = values["keep-going"].as<bool>();
  if (const auto text = given(values, "check-drift"))
    options.check_drift = count("check-drift", *text, 0, kMost);
  if (const auto text = given(values, "keep"))
    options.keep = static_cast<int>(count("keep", *text, 0, 1 << 30));
  if (const auto text = given(values, "validate-every"))
    options.validate_every = count("validate-every", *text, 1, kMost);
  if (const auto text = given(values, "early-stopping")) options.early_stopping = early_stopping_from(*text);
  options.keep_best = given(values, "keep-best").value_or("");
  if (const auto text = given(values, "tensorboard")) options.tensorboard = *text;
  if (const auto text = given(values, "histogram-steps"))
    options.histogram_steps = count("histogram-steps", *text, 0, kMost);
  if (const auto text = given(values, "log-steps")) options.log_steps = count("log-steps", *text, 1, kMost);
  if (const auto text = given(values, "seed")) options.seed = count("seed", *text, 0, kMost);
  if (const auto text = given(values, "device")) options.device = device_from(*text);
  if (const auto text = given(values, "threads"))
    options.threads = static_cast<int>(count("threads", *text, 1, 4096));
  if (const auto text = given(values, "log-dir")) options.log_dir = *text;
  if (const auto text = given(values, "trace")) options.trace = *text;
  if (const auto text = given(values, "profile")) options.profile = count("profile", *text, 1, 1 << 20);
  options.evaluate = values["evaluate"].as<bool>();
  if (values.count("predict") > 0) options.predict = values["predict"].as<std::vector<std::string>>();
  if (const auto text = given(values, "top")) options.top = count("top", *text, 1, 1 << 20);
  if (const auto text = given(values, "output")) options.output = *text;
  options.prompt = given(values, "prompt");
  if (const auto text = given(values, "length")) options.length = count("length", *text, 1, 1 << 24);
  if (const auto temperature =
          number(values, "temperature", "from 0 on", [](double value) { return value >= 0; }))
    options.temperature = *temperature;
  options.json = values["json"].as<bool>();
  options.help = values["help"].as<bool>();
  options.version = values["version"].as<bool>();
  return options;
}

bool is_given(const po::variables_map& values, const char* name) {
  return values.count(name) > 0 && !values[name].defaulted();
}

// Of the command line alone, before the folder adds to it.
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

// Of --no-NAME.
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

// Of what follows from evaluations during the training.
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

void check_combination(const TrainOptions& options, const po::variables_map& values) {
  if (options.model.empty()) {
    const std::string folder = given(values, "checkpoint-dir").value_or("");
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
  check_evaluations(options, values);
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

void name_folders_after_job(po::variables_map& values) {
  const kolo::detail::BatchJob job = kolo::detail::find_batch_job();
  for (const char* name : {"checkpoint-dir", "log-dir"})
    if (const auto found = values.find(name); found != values.end())
      found->second.as<std::string>() = in_batch_job(name, found->second.as<std::string>(), job);
}

}  // namespace

TrainOptions parse_train_options(
    int argc, const char* const* argv,
    const std::function<std::optional<FolderConfig>(const std::string& folder)>& in_folder) {
  const po::options_description described = described_options();
  po::variables_map values;
  std::vector<std::string> words(argv + 1, argv + argc);
  const std::vector<std::string> ended = take_ended(words);
  store_words(words, described, values);
  name_folders_after_job(values);
  check_ended(ended, values);
  std::optional<FolderConfig> found;
  const auto folder = given(values, "checkpoint-dir");
  if (folder && !folder->empty() && !values["help"].as<bool>() && !values["version"].as<bool>())
    found = in_folder(*folder);
  check_prediction(values, found);
  if (found) {  // what is stored first stays
    const std::vector<std::string> added =
        words_of(added_switches(*found, switches_in(values), ended), described);
    values = po::variables_map();
    store_words(added, described, values);
    store_words(words, described, values);
    name_folders_after_job(values);
  }
  TrainOptions options = read_values(values);
  if (options.help || options.version) return options;
  check_combination(options, values);
  if (!options.learning_rate) options.learning_rate = optimizer_traits(options.optimizer).learning_rate;
  options.command = fmt::format("kolo-train {}", fmt::join(argv + 1, argv + argc, " "));
  options.switches = kept_switches(switches_in(values));
  options.found = std::move(found);
  return options;
}

std::map<std::string, std::int64_t> sizes_of(const TrainOptions& options) {
  const Model& model = find_model(options.model);
  const GptOptions gpt;
  const LstmOptions lstm;
  const bool is_gpt = options.model == "gpt";
  const auto chosen = [](std::int64_t size, std::int64_t otherwise) { return size > 0 ? size : otherwise; };
  std::map<std::string, std::int64_t> sizes;
  if (model.takes("layers")) sizes["layers"] = chosen(options.size.layers, is_gpt ? gpt.layers : lstm.layers);
  if (model.takes("width")) sizes["width"] = chosen(options.size.width, is_gpt ? gpt.width : lstm.width);
  if (model.takes("heads")) sizes["heads"] = chosen(options.size.heads, gpt.heads);
  if (model.takes("context")) sizes["context"] = options.context.value_or(model.sample.dim(0));
  return sizes;
}

std::string train_help() {
  std::ostringstream text;
  text << "kolo-train trains a model of the zoo on every rank of the job, in step, or evaluates one.\n"
          "  kolo-train --model lenet --checkpoint-dir ck\n"
          "  kolorun -n 2 -- kolo-train --model lenet --checkpoint-dir ck --epochs 10\n"
          "  kolo-train --checkpoint-dir ck --evaluate\n\n"
       << described_options()
       << "\nSIGTERM, SIGINT or SIGUSR1 stops all ranks after the same step, saved. Exit code 0: done; "
          "KOLO_STOPPED_EXIT_CODE (0):\n"
          "stopped on request and saved; 2: the command line is wrong; 1: everything else.\n";
  return text.str();
}

}  // namespace kolo::models
