#include <kolo/models/programs/train_options.h>

#include <fmt/format.h>
#include <boost/program_options.hpp>

#include <limits>
#include <sstream>
#include <utility>
#include <vector>

#include <kolo/core/base/batch_job.h>
#include <kolo/core/base/csv_line.h>
#include <kolo/core/base/error.h>
#include <kolo/core/base/text.h>
#include <kolo/models/models.h>
#include <kolo/models/programs/batch_folder.h>
#include <kolo/models/programs/best_value.h>
#include <kolo/models/programs/command_words.h>
#include <kolo/models/programs/kept_switches.h>
#include <kolo/models/programs/losses.h>
#include <kolo/models/programs/train_options_internal.h>
#include <kolo/models/programs/train_switches.h>
#include <kolo/models/samples.h>
#include <kolo/models/zoo.h>
#include <kolo/optimizer/registry.h>

namespace kolo::models {
namespace {

namespace po = boost::program_options;

constexpr std::int64_t kMostCount = std::numeric_limits<std::int64_t>::max() / 4096;

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

template <typename Number>
void read_count(const po::variables_map& values, const char* option, std::int64_t least, std::int64_t most,
                Number& number) {
  if (const auto text = given(values, option))
    number = static_cast<Number>(count(option, *text, least, most));
}

void read_text(const po::variables_map& values, const char* option, std::string& text) {
  text = given(values, option).value_or(text);
}

void read_data(const po::variables_map& values, TrainOptions& options) {
  read_text(values, "model", options.model);
  read_count(values, "layers", 1, 1024, options.size.layers);
  read_count(values, "width", 1, 1 << 20, options.size.width);
  read_count(values, "heads", 1, 1 << 20, options.size.heads);
  read_count(values, "context", 1, 1 << 20, options.context);
  options.data = given(values, "data");
  read_text(values, "target", options.target);
  if (const auto text = given(values, "ignore")) options.ignore = names_in(*text);
  if (const auto text = given(values, "missing")) options.missing = missing_from(*text);
  if (const auto text = given(values, "loss")) options.loss = loss_from(*text);
  options.skip_damaged = values["skip-damaged"].as<bool>();
  if (const auto text = given(values, "augment")) options.augment = augment_from(*text);
  options.normalize = values["normalize"].as<bool>();
}

void read_updates(const po::variables_map& values, TrainOptions& options) {
  read_text(values, "optimizer", options.optimizer);
  options.learning_rate = positive(values, "learning-rate");
  if (const auto momentum = fraction(values, "momentum")) options.momentum = *momentum;
  options.weight_decay = fraction(values, "weight-decay");
  options.schedule = schedule_from(given(values, "schedule").value_or("constant"));
  read_count(values, "warmup", 0, kMostCount, options.warmup);
  options.clip_norm = positive(values, "clip-norm");
  options.average_decay = fraction(values, "average-decay");
  read_count(values, "backward-passes", 1, 1 << 20, options.backward_passes);
  options.compression = compression_from(given(values, "compression").value_or("none"));
  options.precision = precision_from(given(values, "precision").value_or("automatic"));
  options.sharded = values["sharded"].as<bool>();
}

void read_steps(const po::variables_map& values, TrainOptions& options) {
  read_count(values, "batch-size", 1, 1 << 24, options.batch_size);
  read_count(values, "global-batch", 1, std::int64_t{1} << 40, options.global_batch);
  options.epoch_end = epoch_end_from(given(values, "epoch-end").value_or("drop"));
  options.scale_rate = rate_rule_from(given(values, "scale-rate").value_or("none"));
  read_count(values, "rescale-steps", 1, kMostCount, options.rescale_steps);
  read_count(values, "steps", 1, kMostCount, options.steps);
  read_count(values, "epochs", 1, 1 << 30, options.epochs);
}

void read_checkpoints(const po::variables_map& values, TrainOptions& options) {
  read_text(values, "checkpoint-dir", options.checkpoint_dir);
  read_count(values, "save-steps", 1, kMostCount, options.save_steps);
  read_text(values, "init-from", options.init_from);
  read_text(values, "init-names", options.init_names);
  options.keep_going = values["keep-going"].as<bool>();
  read_count(values, "check-drift", 0, kMostCount, options.check_drift);
  read_count(values, "keep", 0, 1 << 30, options.keep);
}

void read_reports(const po::variables_map& values, TrainOptions& options) {
  read_count(values, "validate-every", 1, kMostCount, options.validate_every);
  if (const auto text = given(values, "early-stopping")) options.early_stopping = early_stopping_from(*text);
  read_text(values, "keep-best", options.keep_best);
  read_text(values, "tensorboard", options.tensorboard);
  read_count(values, "histogram-steps", 0, kMostCount, options.histogram_steps);
  read_count(values, "log-steps", 1, kMostCount, options.log_steps);
  read_count(values, "seed", 0, kMostCount, options.seed);
  if (const auto text = given(values, "device")) options.device = device_from(*text);
  read_count(values, "threads", 1, 4096, options.threads);
  read_text(values, "log-dir", options.log_dir);
  read_text(values, "trace", options.trace);
  read_count(values, "profile", 1, 1 << 20, options.profile);
}

void read_answers(const po::variables_map& values, TrainOptions& options) {
  options.evaluate = values["evaluate"].as<bool>();
  if (values.count("predict") > 0) options.predict = values["predict"].as<std::vector<std::string>>();
  read_count(values, "top", 1, 1 << 20, options.top);
  read_text(values, "output", options.output);
  options.prompt = given(values, "prompt");
  read_count(values, "length", 1, 1 << 24, options.length);
  if (const auto temperature =
          number(values, "temperature", "from 0 on", [](double value) { return value >= 0; }))
    options.temperature = *temperature;
  options.json = values["json"].as<bool>();
  options.help = values["help"].as<bool>();
  options.version = values["version"].as<bool>();
}

TrainOptions read_values(const po::variables_map& values) {
  TrainOptions options;
  read_data(values, options);
  read_updates(values, options);
  read_steps(values, options);
  read_checkpoints(values, options);
  read_reports(values, options);
  read_answers(values, options);
  return options;
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
  read_values(values);  // what was given wrongly is told before what it would change
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
          "KOLO_STOPPED_EXIT_CODE (0, with\n"
          "KOLO_REQUEUE=1 75): stopped on request and saved; 2: the command line is wrong; 1: everything "
          "else.\n";
  return text.str();
}

}  // namespace kolo::models
