// The samples that kolo-train's options name, as the model takes them.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <kolo/core/graph/scope.h>
#include <kolo/models/batches.h>
#include <kolo/models/data.h>
#include <kolo/models/models.h>
#include <kolo/models/programs/evaluation.h>
#include <kolo/models/programs/train_options.h>
#include <kolo/models/samples.h>

namespace kolo::models {

/// The variable that a model trained with --normalize has.
inline constexpr char kInputMean[] = "input/mean";

/// What of a checkpoint folder lists TrainingData::drawn, a name a line.
inline constexpr char kDrawnFile[] = "testing.txt";

/// config.json of the folder from which --init-from takes its weights; nothing where it has none.
std::optional<FolderConfig> config_of_weights(const TrainOptions& options);

struct TrainingData {
  std::shared_ptr<const SampleSet> train;  // nullptr: it was not asked for
  std::shared_ptr<const SampleSet> test;   // nullptr: there is none
  std::string format;                      // as DataSplits has it, for a training
  std::vector<std::string> drawn;          // the same
  // Of rank 0, looked for once, because a folder's config.json is written several times: by what the samples
  // are known again, and those from which --init-from's weights have learnt; how large the training samples'
  // numbers are in each column of a table, and those to find; of a text its characters (characters_of).
  std::optional<SampleDigests> digests;
  std::vector<SampleDigests> learnt_before;
  std::shared_ptr<const LearntSamples> learnt;  // all of these starts, for a file beside config.json
  ColumnSizes column_sizes, label_sizes;
  std::optional<std::string> characters;
  // Of the training samples, for --normalize; the second of the numbers to find.
  std::optional<SampleStatistics> statistics, label_statistics;
  /// Of those that are there: both splits are alike in it.
  const SampleKind& kind() const { return train ? train->kind() : test->kind(); }
};

/// training: false reads the test split alone, and throws NotFoundError where there is none. Throws what
/// load_data throws, and InvalidArgumentError where the two splits have samples of different shapes.
/// The statistics are not there yet.
TrainingData load_training_data(const TrainOptions& options, bool training);
/// Adds what --normalize needs of the training samples, which it reads.
void add_statistics(const TrainOptions& options, TrainingData& data);

/// This rank's part of the batches; batch_size is the most samples of one. Threads that decode: as many as
/// compute.
BatchOptions batch_options(const TrainOptions& options);

/// What the model is fed with: a placeholder "images" or "tokens", [-1, the kind's shape…].
Output samples_like(const Scope& s, const SampleKind& kind);

/// A placeholder "labels": i32 [-1], or of numbers and several labels f32 [-1, outputs].
Output labels_like(const Scope& s, const SampleKind& kind);

/// What --loss names, or else the usual one.
std::string loss_name(const TrainOptions& options, const SampleKind& kind);
/// Its mean over the samples, a scalar. With --normalize numbers are compared as shifted and scaled.
Output build_loss(const Scope& s, const TrainOptions& options, const SampleKind& kind, Output logits,
                  Output labels);

/// logits: of the network in inference.
AnswerCheck answer_check(const Scope& s, const TrainOptions& options, const SampleKind& kind, Output logits,
                         Output samples, Output labels);

/// "2 a rank (--threads)": how many compute, and what says so.
std::string text_of_threads(const TrainOptions& options);

/// The model's logits for `samples`: as many classes as the data have. With --normalize samples are shifted
/// and scaled first, by the variables input/mean and input/deviation, which are saved and not trained;
/// numbers to find are scaled and shifted back, by output/deviation and output/mean. data: the first values
/// of all these, nullptr where they come from a checkpoint.
Output build_logits(Scope& s, const TrainOptions& options, const SampleKind& kind, Output samples,
                    const TrainingData* data);

}  // namespace kolo::models
