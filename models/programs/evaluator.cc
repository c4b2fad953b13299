#include <kolo/models/programs/evaluator.h>

#include <string>

#include <kolo/core/base/process.h>
#include <kolo/core/ops/basic.h>
#include <kolo/models/programs/data_warnings.h>
#include <kolo/models/programs/evaluation.h>
#include <kolo/models/programs/picture_check.h>
#include <kolo/models/programs/progress.h>
#include <kolo/models/programs/restored_model.h>
#include <kolo/models/programs/shared_errors.h>
#include <kolo/models/programs/training_config.h>
#include <kolo/models/programs/training_data.h>

namespace kolo::models {

void evaluate(const TrainOptions& options) {
  std::string metrics_file;
  OwnGpu gpu;
  TrainingData data = on_all_ranks([&] {
    gpu = gpu_of_this_rank(options.device);
    metrics_file = log_file(options);
    TrainingData loaded = load_training_data(options, false);
    check_samples(options, loaded.kind());
    return loaded;
  });
  warn_of_data(options, data);
  check_pictures(options, data);
  RestoredModel model(options, data.kind(), gpu);
  const Scope s = model.scope();
  const AnswerCheck check =
      answer_check(s, options, data.kind(), model.logits(), model.samples(), labels_like(s, data.kind()));
  TrainResult result;
  result.global_step = model.global_step();
  // The tokens of a text are no labels that anybody gave.
  const bool is_of_classes =
      data.kind().dtype != DType::i32 && data.kind().label_kind == LabelKind::one_class;
  result.test = evaluate_on_all_ranks(model.session(), check, data.test, batch_options(options),
                                      is_of_classes ? &result.by_class : nullptr);
  result.in_detail = true;
  Progress progress({.prints = process().rank == 0,
                     .json = options.json,
                     .log_file = metrics_file,
                     .data_name = data.kind().name,
                     .label_kind = data.kind().label_kind,
                     .tokens = data.kind().dtype == DType::i32,
                     .ranks = process().size});
  progress.start(result.global_step);
  progress.done(result);
}

}  // namespace kolo::models
