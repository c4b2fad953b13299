#include <kolo/models/programs/validation_watch.h>

#include <fmt/format.h>

#include <filesystem>
#include <set>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <kolo/core/base/error.h>
#include <kolo/core/base/log.h>
#include <kolo/core/base/process.h>
#include <kolo/core/graph/graph_def.h>
#include <kolo/core/training/checkpoint_files.h>
#include <kolo/core/training/global_step.h>
#include <kolo/core/training/inference_graph.h>
#include <kolo/models/samples.h>

namespace kolo::models {
namespace {

// What --evaluate and --predict restore: without optimizer slots, which --sharded spreads over the ranks.
std::vector<Variable> of_the_network(Output inferred, const std::vector<Variable>& averages) {
  Graph network;
  import_graph_def(Scope(network), inference_graph({inferred}));
  std::set<std::string> names;
  for (const Variable& variable : global_variables(network)) names.insert(variable.name());
  std::vector<Variable> found = averages;
  found.push_back(require_global_step(inferred.node->graph(), "--keep-best"));
  for (const Variable& variable : global_variables(inferred.node->graph()))
    if (names.contains(variable.name())) found.push_back(variable);
  return found;
}

// A number to find that is the same in all test samples: R² divides by its spread. Pictures would have to be
// decoded to be asked.
void check_spread(const std::string& option, const BestValue& value, const SampleSet& test) {
  const SampleKind& kind = test.kind();
  if (value.metric() != "test_r2" || kind.decoded) return;
  const Batch one{.samples = Tensor(kind.dtype, batch_shape(kind, 1)),
                  .labels = Tensor(label_dtype(kind), labels_shape(kind, 1))};
  std::vector<bool> varies(static_cast<std::size_t>(kind.classes));
  std::vector<float> first;
  for (std::int64_t i = 0; i < test.size(); ++i) {
    test.read(i, nullptr, one, 0);
    const auto numbers = one.labels.span<float>();
    if (i == 0) first.assign(numbers.begin(), numbers.end());
    for (std::size_t k = 0; k < varies.size(); ++k) varies[k] = varies[k] || numbers[k] != first[k];
  }
  for (std::size_t k = 0; k < varies.size(); ++k)
    if (!varies[k])
      throw InvalidArgumentError(
          "--{} test_r2: {} is {:g} in all {} test samples, so R² is not a number; test_rmse and test_mae "
          "are",
          option, kind.class_name(static_cast<std::int64_t>(k)), first[k], test.size());
}

}  // namespace

ValidationWatch::ValidationWatch(const TrainOptions& options, const TrainingData& data, Output inferred,
                                 Output images, const std::vector<Variable>& averages,
                                 std::function<void(const std::string& folder)> write_config)
    : options_(options), inferred_(inferred), images_(images), write_config_(std::move(write_config)) {
  if (!options.early_stopping.metric.empty()) stops_.emplace(options.early_stopping.metric);
  if (!options.keep_best.empty()) keeps_.emplace(options.keep_best);
  for (const auto* const value : {&stops_, &keeps_}) {
    if (!*value) continue;
    (*value)->check(data.kind().label_kind);
    if (data.test == nullptr)
      throw InvalidArgumentError("--{} needs test samples, and {} has none",
                                 value == &stops_ ? "early-stopping" : "keep-best", data.kind().name);
    check_spread(value == &stops_ ? "early-stopping" : "keep-best", **value, *data.test);
  }
  if (!keeps_ || process().rank != 0) return;
  std::error_code failed;
  std::filesystem::create_directories(folder(), failed);
  if (failed || !std::filesystem::is_directory(folder()))
    throw FailedPreconditionError("--keep-best: the folder {} cannot be made: {}", folder(),
                                  failed ? failed.message() : "it is a file");
  saver_.emplace(of_the_network(inferred, averages), SaverOptions{.max_to_keep = 1});
  // Those of other runs go with the next one.
  saver_->recover_last_checkpoints(paths_oldest_first(folder(), list_checkpoints(folder())));
}

std::vector<SavedState> ValidationWatch::saved_states() {
  std::vector<SavedState> states;
  const auto add = [&](const char* name, std::optional<BestValue>& value) {
    if (value)
      states.push_back({.name = name,
                        .save = [&value] { return value->state(); },
                        .restore = [&value](const std::string& state) { value->restore(state); }});
  };
  add("early_stopping", stops_);
  add("keep_best", keeps_);
  return states;
}

bool ValidationWatch::misses(std::int64_t step) const {
  return (stops_ && stops_->noted() != step) || (keeps_ && keeps_->noted() != step);
}

void ValidationWatch::note(Session& session, std::int64_t step, const Evaluation& evaluation,
                           bool is_counted) {
  if (stops_ && is_counted && stops_->noted() != step) stops_->note(step, evaluation);
  if (keeps_ && keeps_->note(step, evaluation) && saver_) keep(session, step);
  if (keeps_ && saver_ && !keeps_->is_known() && !std::exchange(has_warned_, true))
    log_warning("--keep-best {}: it is not a number at step {}, and nothing is kept before it is one",
                keeps_->metric(), step);
}

void ValidationWatch::keep(Session& session, std::int64_t step) {
  saver_->save(session, folder() + "/model.ckpt", step);
  write_inference_graph(folder(), {inferred_}, {images_});
  write_config_(folder());
  log_info("{} has the best weights so far: {}", folder(), keeps_->text());
}

std::string ValidationWatch::why_to_stop() const {
  if (!stops_ || stops_->waited() < options_.early_stopping.patience) return "";
  return fmt::format("no better in {} evaluations (--early-stopping): {}{}", stops_->waited(),
                     stops_->is_known() ? "the best is " : "", stops_->text());
}

}  // namespace kolo::models
