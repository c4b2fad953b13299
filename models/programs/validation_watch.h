// What follows from the evaluations during a training: --early-stopping and --keep-best.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <kolo/core/graph/scope.h>
#include <kolo/core/ops/variables.h>
#include <kolo/core/runtime/session.h>
#include <kolo/core/training/hooks.h>
#include <kolo/core/training/saver.h>
#include <kolo/models/programs/best_value.h>
#include <kolo/models/programs/train_options.h>
#include <kolo/models/programs/training_data.h>

namespace kolo::models {

/// Decides the same on all ranks, and goes on where a checkpoint has left it. One thread. The constructor
/// throws InvalidArgumentError for a metric that there is not, and without test samples,
/// FailedPreconditionError for a folder that cannot be made.
class ValidationWatch {
 public:
  /// inferred: the network in inference, of images, whose variables, and `averages`, --keep-best keeps.
  /// write_config: config.json, into its folder.
  ValidationWatch(const TrainOptions& options, const TrainingData& data, Output inferred, Output images,
                  const std::vector<Variable>& averages,
                  std::function<void(const std::string& folder)> write_config);

  /// For the session's checkpoints.
  std::vector<SavedState> saved_states();
  /// Whether a checkpoint of this step was saved before what was found at it was noted.
  bool misses(std::int64_t step) const;
  /// Rank 0 saves where it is the best one so far. is_counted: --early-stopping counts it, too. Throws what
  /// Saver does.
  void note(Session& session, std::int64_t step, const Evaluation& evaluation, bool is_counted);
  bool keeps() const { return keeps_.has_value(); }
  /// Why the training ends here, or has ended before; "" if it goes on.
  std::string why_to_stop() const;

 private:
  std::string folder() const { return options_.checkpoint_dir + "/best"; }
  void keep(Session& session, std::int64_t step);

  const TrainOptions& options_;
  std::optional<BestValue> stops_, keeps_;
  std::optional<Saver> saver_;
  bool has_warned_ = false;
  const Output inferred_, images_;
  const std::function<void(const std::string& folder)> write_config_;
};

}  // namespace kolo::models
