#include <kolo/models/programs/restored_model.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include <kolo/core/base/error.h>
#include <kolo/core/base/log.h>
#include <kolo/core/base/process.h>
#include <kolo/core/graph/inference_form.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/variables.h>
#include <kolo/core/training/checkpoint_files.h>
#include <kolo/core/training/saver.h>
#include <kolo/models/programs/shared_errors.h>
#include <kolo/models/programs/training_data.h>
#include <kolo/optimizer/hooks.h>
#include <kolo/optimizer/moving_average.h>

namespace kolo::models {

void check_fits(const TrainOptions& options, const std::string& checkpoint) {
  const CheckpointReader reader(checkpoint);
  const auto& tensors = reader.index().tensors;
  const bool trains = !options.evaluate && !options.predicts();
  if (!options.normalize && tensors.contains(kInputMean))
    throw InvalidArgumentError("{}: {} was trained with --normalize; {} with that, too",
                               trains ? "--checkpoint-dir" : "--evaluate", checkpoint,
                               trains ? "go on" : "evaluate it");
  const bool has_averages = std::any_of(tensors.begin(), tensors.end(), [](const auto& tensor) {
    return std::string_view(tensor.first).ends_with(kAverageSuffix);
  });
  if (options.average_decay && !has_averages)
    throw InvalidArgumentError(
        "--average-decay {:g}: {} holds no moving averages, because it was trained without them; leave the "
        "switch out, or take another folder",
        *options.average_decay, checkpoint);
  if (!options.average_decay && has_averages && !trains)
    log_warning(
        "{} holds moving averages, too, and its last weights are used; --average-decay takes the averages",
        checkpoint);
}

RestoredModel::RestoredModel(const TrainOptions& options, const SampleKind& kind, const OwnGpu& gpu)
    : session_(graph_, session_config(options, gpu)) {
  build(options, kind);
  global_step_ = on_all_ranks([&]() -> std::int64_t {
    if (process().rank != 0) return 0;  // rank 0 alone touches the folder, and tells the step
    const auto checkpoint = newest_trained_checkpoint(options.checkpoint_dir);
    if (!checkpoint)
      throw NotFoundError("{}: there is no checkpoint in {}; train there first",
                          options.evaluate ? "--evaluate" : "--predict", options.checkpoint_dir);
    check_fits(options, *checkpoint);
    return Saver(graph_).restore(session_, *checkpoint).global_step.value_or(0);
  });
  if (process().rank == 0 && global_step_ == 0)
    log_warning("{} holds the checkpoint of step 0 alone: its network is untrained", options.checkpoint_dir);
  broadcast_variables(session_, global_variables(graph_), 0);
  if (use_averages_) session_.run(use_averages_);
}

void RestoredModel::build(const TrainOptions& options, const SampleKind& kind) {
  Scope s(graph_);
  samples_ = samples_like(s, kind);
  logits_ = inference_form(s, build_logits(s, options, kind, samples_, nullptr));
  if (!options.average_decay) return;
  ExponentialMovingAverage averages(*options.average_decay);
  averages.apply(s, trainable_variables(graph_), group(s, {}));
  use_averages_ = averages.swap(s);
}

}  // namespace kolo::models
