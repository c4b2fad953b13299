#include <kolo/models/programs/training_data.h>

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <kolo/core/base/cores.h>
#include <kolo/core/base/durable_file.h>
#include <kolo/core/base/env.h>
#include <kolo/core/base/error.h>
#include <kolo/core/base/log.h>
#include <kolo/core/base/process.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/ops/variables.h>
#include <kolo/core/runtime/pools.h>
#include <kolo/models/column_scale.h>
#include <kolo/models/data.h>
#include <kolo/models/folder_config.h>
#include <kolo/models/learnt_file.h>
#include <kolo/models/learnt_samples.h>
#include <kolo/models/paths.h>
#include <kolo/models/programs/kept_switches.h>
#include <kolo/models/programs/losses.h>
#include <kolo/models/samples_internal.h>

namespace kolo::models {
namespace {

constexpr char kOutputDeviation[] = "output/deviation";
constexpr std::int64_t kMostRead = 10000, kMostDecoded = 1000;  // samples that --normalize looks at

DataRequest request_of(const TrainOptions& options) {
  const Model& model = find_model(options.model);
  DataRequest request{.data = options.data, .sample = model.sample, .input = model.input};
  for (const std::string& folder : {options.checkpoint_dir, options.log_dir, options.tensorboard})
    if (!folder.empty()) request.outputs.push_back(folder);
  if (!options.augment.empty()) request.augmentation = augmentation_from(options.augment);
  request.table = {.target = options.target, .ignore = options.ignore, .missing = options.missing};
  if (!options.loss.empty()) request.label_kind = find_loss(options.loss)->of;
  request.seed = static_cast<std::uint64_t>(options.found ? options.found->seed : options.seed);
  if (options.found) {
    const FolderConfig& found = *options.found;
    request.table.known = found.table;
    // A folder of an earlier version: its columns are numbers, and go by their places.
    if (!found.table && found.dtype == name(DType::f32) && found.sample.rank() == 1)
      request.table.known = std::make_shared<const TableSchema>(plain_table(found.sample.dim(0)));
    request.classes = found.classes;
    if (found.label_kind != LabelKind::numbers) request.class_names = found.class_names;
    request.label_kind = found.label_kind;
    request.label_table = found.label_table;
    request.trained = found.trained;
    // Rank 0 alone speaks of samples that were learnt from.
    if (process().rank == 0) request.learnt = detail::read_learnt_file(found);
    const auto trained_on = found.switches.find("data");
    const bool is_known = trained_on != found.switches.end();
    request.is_own = is_known && is_same_data(options.switches.at("data"), trained_on->second);
    request.whole = options.evaluate && is_known && (!request.is_own || !request.trained.empty());
  }
  if (const auto weights = config_of_weights(options); weights && !options.found) {
    request.trained = weights->trained;
    if (process().rank == 0) request.learnt = detail::read_learnt_file(*weights);
  }
  if (options.context) request.sample = {*options.context};
  return request;
}

void check_splits(const SampleKind& train, const SampleKind& test) {
  if (train.shape == test.shape && train.classes >= test.classes) return;
  throw InvalidArgumentError(
      "{}: training samples are {} of {} classes, test samples {} of {}; they must be alike", train.name,
      train.shape, train.classes, test.shape, test.classes);
}

// Along the channels of images, and along the elements of other samples.
Variable fixed_variable(const Scope& s, const std::string& name, const Shape& shape,
                        std::span<const float> values) {
  const Tensor start = values.empty() ? Tensor::zeros(DType::f32, shape) : Tensor::of<float>(shape, values);
  return Variable(s.named(name), constant(s.named(name + "/initial_value"), start), {.trainable = false});
}

// A model's own error speaks of the shapes of its layers.
[[noreturn]] void throw_other_samples(const SampleKind& kind, const Model& model) {
  const bool takes_images = model.sample.rank() == 3, are_images = kind.shape.rank() == 3;
  throw InvalidArgumentError("--model {}: it takes {}, and samples of {} are {}; {}", model.name,
                             !takes_images ? fmt::format("samples {}", model.sample)
                             : are_images  ? fmt::format("images {}", model.sample)
                                           : "images",
                             kind.name, kind.shape,
                             kind.shape.rank() == 1 ? "--model mlp takes rows of numbers"
                             : are_images           ? "models for images are " + detail::models_for_images()
                                                    : "another model takes them");
}

// Of what was read as other samples are: unknown words, and what else it has not in common with them.
std::string testing_text(const TrainOptions& options, const TrainingData& data) {
  if (data.test == nullptr) return "and 0 for testing";
  std::string text = fmt::format("and {} for testing", data.test->size());
  const std::string& note = data.test->kind().note;
  if (!note.empty() && note != data.train->kind().note) return fmt::format("{} ({})", text, note);
  if (data.drawn.empty() || options.checkpoint_dir.empty()) return text;
  return fmt::format("{} ({}/{} names them)", text, options.checkpoint_dir, kDrawnFile);
}

// It changes pixels of pictures alone. Folders of earlier versions kept the switch for other data, too.
void check_augmentation(const TrainOptions& options, const TrainingData& data) {
  const SampleKind& kind = data.train->kind();
  const bool are_pictures = kind.shape.rank() == 3 && data.format != kArraysFormat;
  if (options.augment.empty() || are_pictures || options.found) return;
  throw InvalidArgumentError("--augment is for pictures, and {} {}; leave it out", kind.name,
                             kind.table                 ? "is a table"
                             : kind.dtype == DType::i32 ? "is a text"
                                                        : "holds arrays, which stay as they are");
}

}  // namespace

std::optional<FolderConfig> config_of_weights(const TrainOptions& options) {
  const std::string& weights = options.init_from;  // a folder of checkpoints, or a file in one
  try {
    if (weights.empty() || !options.init_names.empty()) return std::nullopt;
    return load_folder_config(detail::is_folder(weights) ? weights : folder_of(weights));
  } catch (const DataLossError&) {
    return std::nullopt;
  }
}

TrainingData load_training_data(const TrainOptions& options, bool training) {
  const DataRequest request = request_of(options);
  TrainingData data;
  if (!training) {
    data.test = load_data(request, Split::test);
    if (!data.test)
      throw NotFoundError(
          "--evaluate: there are no test samples in {}; {}", options.data.value_or("the data folder"),
          request.input == DType::i32
              ? "the last tenth of a text is for testing, and here it is no longer than a sample"
              : "name a folder that has test/CLASS/, test.csv or x_test.npy by --data");
    if (process().rank == 0) log_info("data: {}", description(*data.test));
    return data;
  }
  DataSplits splits = load_splits(request);
  data.train = std::move(splits.train);
  data.test = std::move(splits.test);
  data.format = std::move(splits.format);
  data.drawn = std::move(splits.drawn);
  if (data.test) check_splits(data.train->kind(), data.test->kind());
  check_augmentation(options, data);
  const SampleKind& kind = data.train->kind();
  if (process().rank != 0) return data;
  log_info("data: {}, loss {}, {}", description(*data.train), loss_name(options, kind),
           testing_text(options, data));
  const detail::SampleSizes sizes = detail::sizes_of_samples(detail::unit_columns(kind), *data.train);
  data.column_sizes = sizes.columns, data.label_sizes = sizes.labels;
  if (options.checkpoint_dir.empty()) return data;
  data.characters = characters_of(*data.train);
  // A text that a training goes on with may lack some that the model has learnt. "": one was not UTF-8.
  if (data.characters && options.found && options.found->characters)
    data.characters = data.characters->empty() || options.found->characters->empty()
                          ? ""
                          : characters_in(*data.characters + *options.found->characters);
  data.learnt = request.learnt;
  if (splits.digests) {
    data.digests = splits.digests();
    data.learnt = detail::joined(request.learnt, data.digests->kept);
    data.digests->kept = nullptr;
  }
  if (!options.found) data.learnt_before = request.trained;
  return data;
}

void add_statistics(const TrainOptions& options, TrainingData& data) {
  if (!options.normalize) return;
  data.statistics = statistics_of(*data.train, data.train->kind().decoded ? kMostDecoded : kMostRead);
  if (data.train->kind().label_kind == LabelKind::numbers)
    data.label_statistics = label_statistics_of(*data.train, kMostRead);
}

BatchOptions batch_options(const TrainOptions& options) {
  const std::int64_t parts = std::int64_t{process().size} * options.backward_passes;
  // Without these two, batches of one size follow one another, and a step takes several of them.
  const bool by_steps = options.global_batch > 0 || options.epoch_end == EpochEnd::fill;
  return {.batch_size =
              options.global_batch > 0 ? (options.global_batch + parts - 1) / parts : options.batch_size,
          .global_batch_size = options.global_batch,
          .passes = by_steps ? options.backward_passes : 1,
          .epoch_end = options.epoch_end,
          .rank = process().rank,
          .ranks = process().size,
          .seed = static_cast<std::uint64_t>(options.seed),
          .threads = kolo::detail::intra_op_threads_of_process(options.threads)};
}

std::string text_of_threads(const TrainOptions& options) {
  const int threads = kolo::detail::intra_op_threads_of_process(options.threads);
  if (options.threads > 0) return fmt::format("{} a rank (--threads)", threads);
  if (omp_num_threads()) return fmt::format("{} a rank (OMP_NUM_THREADS)", threads);
  const int cores = find_cores().count, ranks = process().core_sharers;
  return fmt::format("{} a rank ({} core{}{})", threads, cores, cores == 1 ? "" : "s",
                     ranks == 1 ? "" : fmt::format(" for {} ranks", ranks));
}

Output samples_like(const Scope& s, const SampleKind& kind) {
  return placeholder(s.named(kind.dtype == DType::i32 ? "tokens" : "images"), kind.dtype,
                     batch_shape(kind, -1));
}

Output labels_like(const Scope& s, const SampleKind& kind) {
  return placeholder(s.named("labels"), label_dtype(kind),
                     kind.label_kind == LabelKind::one_class ? Shape{-1} : Shape{-1, kind.classes});
}

std::string loss_name(const TrainOptions& options, const SampleKind& kind) {
  return options.loss.empty() ? usual_loss(kind.label_kind).name : options.loss;
}

Output build_loss(const Scope& s, const TrainOptions& options, const SampleKind& kind, Output logits,
                  Output labels) {
  const Loss& loss = *find_loss(loss_name(options, kind));
  if (kind.label_kind != LabelKind::numbers) return loss.mean(s, logits, labels);
  Output error = sub(s, logits, labels);
  for (const Variable& variable : global_variables(s.graph()))
    if (variable.name() == kOutputDeviation) error = div(s, error, variable.read());
  return loss.mean(s, error, zeros_like(s, error));
}

AnswerCheck answer_check(const Scope& s, const TrainOptions& options, const SampleKind& kind, Output logits,
                         Output samples, Output labels) {
  return AnswerCheck(s, kind.label_kind, logits, samples, labels,
                     build_loss(s.name_scope("test_loss"), options, kind, logits, labels));
}

Output build_logits(Scope& s, const TrainOptions& options, const SampleKind& kind, Output samples,
                    const TrainingData* data) {
  ModelSize size = options.size;
  size.classes = kind.classes;
  const Model& model = find_model(options.model);
  const auto build = [&](Scope& scope, Output input) {
    try {
      return model.build(scope, input, size);
    } catch (const InvalidArgumentError&) {
      const bool are_other_images = kind.shape.rank() == 3 && kind.shape != model.sample;
      if (kind.shape.rank() == model.sample.rank() && !are_other_images) throw;
      throw_other_samples(kind, model);
    }
  };
  if (!options.normalize) return build(s, samples);
  const Shape shape = kind.shape.rank() == 3 ? Shape{kind.shape.dim(0), 1, 1} : kind.shape;
  const auto values = [](const std::optional<SampleStatistics>* statistics,
                         std::vector<float> SampleStatistics::*which) {
    return statistics != nullptr && *statistics ? std::span<const float>((**statistics).*which)
                                                : std::span<const float>();
  };
  const auto* const found = data == nullptr ? nullptr : &data->statistics;
  const Scope input = s.name_scope("input");
  const Variable mean = fixed_variable(input, "mean", shape, values(found, &SampleStatistics::mean)),
                 deviation =
                     fixed_variable(input, "deviation", shape, values(found, &SampleStatistics::deviation));
  const Output logits = build(s, div(input, sub(input, samples, mean), deviation));
  if (kind.label_kind != LabelKind::numbers) return logits;
  const auto* const of_labels = data == nullptr ? nullptr : &data->label_statistics;
  const Scope output = s.name_scope("output");
  const Variable centre = fixed_variable(output, "mean", {kind.classes},
                                         values(of_labels, &SampleStatistics::mean)),
                 scale = fixed_variable(output, "deviation", {kind.classes},
                                        values(of_labels, &SampleStatistics::deviation));
  return add(output, mul(output, logits, scale), centre);
}

}  // namespace kolo::models
