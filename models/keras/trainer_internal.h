// A compiled model: its training and its inference form, each as one Callable.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <kolo/core/runtime/session.h>
#include <kolo/core/runtime/step_vote.h>
#include <kolo/models/keras/compile.h>
#include <kolo/models/keras/data_internal.h>
#include <kolo/models/keras/model_internal.h>

namespace kolo::keras::detail {

/// One variable of the optimizer's, and what files call it.
struct OptimizerState {
  std::string name;  // "dense_1/kernel/Adam", "beta1_power"
  Variable variable;
};

/// Where a training stands in its data.
struct DataPlace {
  std::int64_t taken = 0;        // of the epoch: samples of all ranks; of a source batches of this rank
  std::int64_t order_batch = 0;  // samples of the batches whose order the epoch was drawn in; 0: of its own
  std::string of_source = {};    // Source::position
  std::int64_t samples = 0;      // of all ranks in that epoch; 0: nobody has told
};

/// Tensors of a batch, checked and of the model's types.
struct Feed {
  std::vector<Tensor> inputs, targets, weights;
  std::int64_t samples = 0;
  // By how much the loss of the batch counts among the ranks (models::Batch::weight). 0: its sample stands in
  // for none.
  float share = 1;
  DataPlace end = {};  // behind the batch
  std::int64_t counted() const { return share == 0 ? 0 : samples; }
};

class Trainer {
 public:
  /// Builds all nodes. Throws InvalidArgumentError for a loss that does not fit the outputs.
  Trainer(ModelImpl& model, CompileOptions options);

  const CompileOptions& options() const { return options_; }
  const std::vector<std::string>& metrics_names() const { return names_; }
  const std::vector<OptimizerState>& optimizer_state() const { return state_; }
  const std::vector<Slot>& inputs() const { return inputs_; }
  const std::vector<Slot>& targets() const { return targets_; }
  /// Outputs with a loss.
  std::size_t outputs_trained() const { return targets_.size(); }

  /// Inputs, targets and weights, shapes checked but not yet cast. Throws InvalidArgumentError.
  Feed checked(const Arrays& x, const Arrays& y, const Arrays& weights) const;

  /// Loss and metrics of the batch, in the order of metrics_names(); train: from before its update.
  std::vector<double> train(const Feed& feed);
  std::vector<double> test(const Feed& feed);

  /// The training step as a callable takes it: inputs, targets and weights; its values; its update.
  CallableSignature training_step() const { return signature(train_values_, update_); }
  /// Those of the update's distributed optimizer; none without one.
  StepVotes votes() const;
  Session& session() const;

  /// Says so where the weights are not those that it was compiled with.
  void warn_of_changed_trainable();

 private:
  struct OutputLoss {
    std::size_t output;  // of the model
    std::string name;
    Loss loss;
    double weight;
    Output target, sample_weights;
  };

  void choose_losses();
  void make_targets(const Scope& s);
  Output values(const Scope& s, const Outputs& predictions, const Outputs& penalties);
  void build_update(const Scope& s, Output loss, const BuildRecord& record);
  void note_state(std::size_t variables_before);
  void check_targets(const std::vector<Tensor>& targets) const;
  CallableSignature signature(Output values, Operation update) const;
  std::vector<double> run(std::optional<Callable>& callable, Output values, Operation update,
                          const Feed& feed);
  std::vector<double> without_share(std::vector<double> values, float share) const;

  ModelImpl& model_;
  CompileOptions options_;
  std::vector<Slot> inputs_, targets_;
  std::vector<OutputLoss> losses_;
  std::vector<std::string> names_;
  std::vector<const Weight*> trained_;
  int first_node_ = 0, end_node_ = 0;  // of the graph, that compile has made
  std::unique_ptr<kolo::Optimizer> optimizer_;
  std::vector<OptimizerState> state_;
  // [k], as metrics_names, and behind them what regularizers add to the loss, where there are some.
  Output train_values_, test_values_;
  std::vector<bool> weighted_;  // by name: its values are multiplied by the samples' weights
  Operation update_;
  std::optional<Callable> train_, test_;
};

/// Predictions of a model that need not be compiled.
class Predictor {
 public:
  explicit Predictor(ModelImpl& model);
  const std::vector<Slot>& inputs() const { return inputs_; }
  std::vector<Tensor> predict(const std::vector<Tensor>& inputs);

 private:
  ModelImpl& model_;
  std::vector<Slot> inputs_;
  Outputs outputs_;
  std::optional<Callable> callable_;
};

std::vector<Slot> input_slots(const ModelImpl& model);

}  // namespace kolo::keras::detail
