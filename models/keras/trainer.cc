#include <algorithm>
#include <set>
#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/core/base/log.h>
#include <kolo/core/graph/inference_form.h>
#include <kolo/core/graph/nodes_behind.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/ops/reductions.h>
#include <kolo/core/ops/shapes.h>
#include <kolo/core/runtime/session_state.h>
#include <kolo/models/keras/optimizers_internal.h>
#include <kolo/models/keras/trainer_internal.h>

namespace kolo::keras::detail {
namespace {

template <typename Entries>
void check_entries(const Entries& entries, const std::vector<std::string>& outputs, const char* what) {
  for (const auto& [name, entry] : entries)
    if (std::find(outputs.begin(), outputs.end(), name) == outputs.end())
      throw InvalidArgumentError(
          "Unknown entry in {} dictionary: \"{}\". Only expected the following keys: {}", what, name,
          list_text(outputs));
}

// Σ weight · value ÷ the number of weights that are not 0; 0 where all are.
Output weighted_mean(const Scope& s, Output values, Output weights) {
  const Output zero = fill(s, DType::f32, {}, 0), one = fill(s, DType::f32, {}, 1);
  const Output counted = reduce_sum(s, cast(s, not_equal(s, weights, zero), DType::f32));
  return div(s, reduce_sum(s, mul(s, values, weights)), maximum(s, counted, one));
}

}  // namespace

std::vector<Slot> input_slots(const ModelImpl& model) {
  std::vector<Slot> slots;
  for (const KerasTensor& input : model.inputs())
    slots.push_back({.name = input.layer()->name(), .dtype = input.dtype(), .shape = input.shape()});
  return slots;
}

Trainer::Trainer(ModelImpl& model, CompileOptions options) : model_(model), options_(std::move(options)) {
  model.require_built();
  inputs_ = input_slots(model);
  choose_losses();
  Workspace& workspace = model.workspace();
  options_.optimizer.impl().bind(workspace);
  first_node_ = workspace.graph().num_nodes();
  const Scope s = workspace.scope().name_scope("training");
  make_targets(s);
  Outputs fed;
  for (const KerasTensor& input : model.inputs()) fed.push_back(input.output());
  BuildRecord record;
  const Outputs predictions = model.form({.scope = s, .record = &record}, fed);
  Outputs penalties = record.penalties;
  for (const Weight* weight : model.weights())
    if (weight->regularizer) penalties.push_back(weight->regularizer.penalty(s, weight->variable));
  train_values_ = values(s.device(std::string_view(model.merge_device())), predictions, penalties);
  const Output loss = unstack(s, train_values_).front();
  const Scope inference = workspace.scope();
  test_values_ = inference_form(inference, train_values_);
  build_update(s, loss, record);
  end_node_ = workspace.graph().num_nodes();
}

StepVotes Trainer::votes() const {
  Workspace& workspace = model_.workspace();
  StepVotes votes;
  for (int id = first_node_; id < end_node_; ++id) {
    const Node& node = workspace.graph().node(id);
    if (vote_factory(node.op()) == nullptr) continue;
    if (auto vote = kolo::detail::state_of(workspace.session()).vote(node)) votes.push_back(std::move(vote));
  }
  return votes;
}

Session& Trainer::session() const { return model_.workspace().session(); }

void Trainer::choose_losses() {
  const std::vector<std::string> outputs = unique_output_names(model_);
  const Losses& asked = options_.loss;
  check_entries(asked.by_name, outputs, "loss");
  check_entries(options_.loss_weights, outputs, "loss_weights");
  check_entries(options_.metrics_by_output, outputs, "metrics");
  if (asked.is_list && asked.list.size() != outputs.size())
    throw InvalidArgumentError(
        "When passing a list as loss, it should have one entry per model outputs. The model has {} outputs, "
        "but you "
        "passed {} losses",
        outputs.size(), asked.list.size());
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    Loss loss = asked.is_list ? asked.list[i] : asked.one;
    if (const auto named = asked.by_name.find(outputs[i]); named != asked.by_name.end()) loss = named->second;
    if (!loss) continue;
    const auto weight = options_.loss_weights.find(outputs[i]);
    losses_.push_back({.output = i,
                       .name = outputs[i],
                       .loss = loss,
                       .weight = weight == options_.loss_weights.end() ? 1 : weight->second,
                       .target = {},
                       .sample_weights = {}});
  }
  if (losses_.empty())
    throw InvalidArgumentError("The model cannot be compiled because it has no loss to optimize.");
}

void Trainer::make_targets(const Scope& s) {
  for (OutputLoss& output : losses_) {
    const Shape& predicted = model_.outputs()[output.output].shape();
    const bool sparse = output.loss.is_sparse();
    const Slot slot{.name = output.name,
                    .dtype = sparse ? DType::i32 : DType::f32,
                    .shape = sparse ? predicted.with_dim(-1, 1) : predicted};
    targets_.push_back(slot);
    output.target = placeholder(s.named(output.name + "_target"), slot.dtype, slot.shape);
    output.sample_weights = placeholder(s.named(output.name + "_sample_weights"), DType::f32, {-1});
  }
}

// One vector, so that a form of the model computes what its values share once.
Output Trainer::values(const Scope& s, const Outputs& predictions, const Outputs& penalties) {
  const bool several = model_.outputs().size() > 1;
  Outputs parts, all;
  names_ = {"loss"};
  for (const OutputLoss& output : losses_) {
    const Output by_sample = output.loss.values(s, output.target, predictions[output.output]);
    const Output loss = weighted_mean(s, by_sample, output.sample_weights);
    parts.push_back(output.weight == 1 ? loss : mul(s, loss, fill(s, DType::f32, {}, output.weight)));
    if (!several) continue;
    names_.push_back(output.name + "_loss");
    all.push_back(loss);
  }
  parts.insert(parts.end(), penalties.begin(), penalties.end());
  all.insert(all.begin(), parts.size() == 1 ? parts[0] : add_n(s.named("loss"), parts));
  weighted_.assign(all.size(), true);
  for (const OutputLoss& output : losses_) {
    const auto add = [&](const Metric& metric, bool weighted) {
      const std::string base =
          (several ? output.name + '_' : "") + (weighted ? "weighted_" : "") + metric.shown_name();
      names_.push_back(unique_among(names_, base));
      weighted_.push_back(weighted);
      const Output by_sample = metric.values(s, output.target, predictions[output.output], output.loss);
      all.push_back(weighted ? weighted_mean(s, by_sample, output.sample_weights)
                             : reduce_mean(s, by_sample));
    };
    for (const Metric& metric : options_.metrics) add(metric, false);
    if (const auto own = options_.metrics_by_output.find(output.name);
        own != options_.metrics_by_output.end())
      for (const Metric& metric : own->second) add(metric, false);
    for (const Metric& metric : options_.weighted_metrics) add(metric, true);
  }
  if (!penalties.empty()) all.push_back(penalties.size() == 1 ? penalties[0] : add_n(s, penalties));
  return stack(s.named("values"), all);
}

void Trainer::build_update(const Scope& s, Output loss, const BuildRecord& record) {
  trained_ = model_.trainable_weights();
  const std::size_t before = global_variables(model_.workspace().graph()).size();
  OptimizerImpl& impl = options_.optimizer.impl();
  std::vector<Operation> done;
  if (!trained_.empty()) {
    optimizer_ = impl.make();
    if (const auto& options = options_.optimizer.distributed_options())
      optimizer_ = std::make_unique<DistributedOptimizer>(std::move(optimizer_), *options);
    std::vector<Variable> variables;
    for (const Weight* weight : trained_) variables.push_back(weight->variable);
    Scope at = s;
    const auto pairs = optimizer_->compute_gradients(at, loss, variables,
                                                     {.colocate_gradients_with_ops = model_.is_placed()});
    done.push_back(
        optimizer_->apply_gradients(at, pairs, {.global_step = impl.variables().at("iterations")}));
  }
  // Constraints see the updated weights: ops on a variable act in the order of their creation.
  const Scope after = done.empty() ? s : s.control_dependencies({done.front()});
  for (const Weight* weight : trained_)
    if (weight->constraint)
      done.push_back(assign(after, weight->variable,
                            weight->constraint.constrained(after, weight->variable, weight->norm_axes)));
  for (const auto& [variable, next] : record.moving_averages) {
    Outputs moves;
    for (const Output& one : next) moves.push_back(sub(s, one, variable));
    done.push_back(next.size() == 1 ? assign(after, variable, next[0])
                                    : assign_add(after, variable, add_n(s, moves)));
  }
  update_ = group(s.named("update"), done);
  note_state(before);
}

void Trainer::note_state(std::size_t variables_before) {
  const std::vector<Variable> all = global_variables(model_.workspace().graph());
  std::map<std::string, int> numbers;
  const auto add = [&](std::string name, const Variable& variable) {
    const int number = numbers[name]++;
    if (number > 0) name += '_' + std::to_string(number);
    state_.push_back({.name = std::move(name), .variable = variable});
  };
  for (const auto& [name, variable] : options_.optimizer.impl().variables()) add(name, variable);
  // An optimizer that is compiled again has its slots from before.
  const auto used = kolo::detail::nodes_of_run({update_.node});
  std::set<const Node*> known;
  for (const Weight* weight : model_.weights()) known.insert(weight->variable.ref().node);
  for (const OptimizerState& state : state_) known.insert(state.variable.ref().node);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Node* const node = all[i].ref().node;
    if (known.contains(node) || (i < variables_before && !used.contains(node->id()))) continue;
    // "<variable>/<optimizer>[_k]": the numbers are the graph's, those of files count from the layer's name.
    std::string name = all[i].name(), file_name = name.substr(0, name.find_last_not_of("0123456789") + 1);
    if (file_name.size() == name.size() || file_name.back() != '_') file_name = name;
    else file_name.pop_back();
    for (const Weight* weight : trained_)
      if (name.compare(0, weight->variable.name().size() + 1, weight->variable.name() + '/') == 0)
        file_name = weight->full_name + '/' + optimizer_->name();
    add(file_name, all[i]);
  }
}

void Trainer::warn_of_changed_trainable() {
  if (model_.trainable_weights() != trained_)
    log_warning(
        "Discrepancy between trainable weights and collected trainable weights, did you set "
        "`model.trainable` "
        "without calling `model.compile` after?");
}

void Trainer::check_targets(const std::vector<Tensor>& targets) const {
  for (std::size_t i = 0; i < targets.size(); ++i) {
    const std::string& loss = losses_[i].loss.name();
    const Shape& shape = targets[i].shape();
    const Shape& output = model_.outputs()[losses_[i].output].shape();
    if (shape.rank() != targets_[i].shape.rank()) continue;  // told by standardized
    if (loss == "categorical_crossentropy" && shape.dim(-1) == 1)
      throw InvalidArgumentError(
          "You are passing a target array of shape {} while using as loss `categorical_crossentropy`. "
          "`categorical_crossentropy` expects targets to be binary matrices (1s and 0s) of shape (samples, "
          "classes).",
          shape_text(shape));
    const bool whole =
        loss == "mean_squared_error" || loss == "binary_crossentropy" || loss == "categorical_crossentropy";
    if (whole && !output.with_dim(0, -1).is_compatible_with(shape))
      throw InvalidArgumentError(
          "A target array with shape {} was passed for an output of shape {} while using as loss `{}`. This "
          "loss "
          "expects targets to have the same shape as the output.",
          shape_text(shape), shape_text(output), loss);
  }
}

Feed Trainer::checked(const Arrays& x, const Arrays& y, const Arrays& weights) const {
  Feed feed;
  feed.inputs = standardized(x, inputs_, "input");
  Arrays targets = y;
  for (std::size_t i = 0; i < targets.list.size() && i < targets_.size(); ++i)
    if (Tensor& t = targets.list[i]; t.shape().rank() == 1 && targets_[i].shape.rank() == 2)
      t = t.reshaped({t.elements(), 1});
  if (targets.by_name.empty() && targets.list.size() == targets_.size()) check_targets(targets.list);
  feed.targets = standardized(targets, targets_, "target");
  feed.samples = samples_of(feed.inputs, "input arrays (x)");
  if (const std::int64_t samples = samples_of(feed.targets, "target arrays (y)"); samples != feed.samples)
    throw InvalidArgumentError(
        "Input arrays should have the same number of samples as target arrays. Found {} input samples and {} "
        "target "
        "samples.",
        feed.samples, samples);
  std::vector<Slot> weight_slots;
  for (const Slot& target : targets_) weight_slots.push_back({.name = target.name, .shape = {-1}});
  if (weights.empty()) return feed;
  for (const Tensor& tensor : weights.list)
    if (tensor.shape().rank() != 1)
      throw InvalidArgumentError(
          "Found a sample_weight array with shape {}. In order to use a sample_weight array, make sure your "
          "sample_weight array is 1D.",
          shape_text(tensor.shape()));
  feed.weights = standardized(weights, weight_slots, "sample_weight");
  if (samples_of(feed.weights, "sample_weight arrays") != feed.samples)
    throw InvalidArgumentError(
        "Sample_weight arrays should have the same number of samples as target arrays.");
  return feed;
}

CallableSignature Trainer::signature(Output values, Operation update) const {
  CallableSignature signature{.feeds = {}, .fetches = {values}, .targets = {}};
  for (const KerasTensor& input : model_.inputs()) signature.feeds.emplace_back(input.output());
  for (const OutputLoss& output : losses_) signature.feeds.emplace_back(output.target);
  for (const OutputLoss& output : losses_) signature.feeds.emplace_back(output.sample_weights);
  if (update) signature.targets.emplace_back(update);
  return signature;
}

std::vector<double> Trainer::run(std::optional<Callable>& callable, Output values, Operation update,
                                 const Feed& feed) {
  Workspace& workspace = model_.workspace();
  workspace.initialize_variables();
  if (!callable) callable = workspace.session().make_callable(signature(values, update));
  std::vector<Tensor> feeds;
  for (std::size_t i = 0; i < feed.inputs.size(); ++i)
    feeds.push_back(cast_to(feed.inputs[i], inputs_[i].dtype));
  for (std::size_t i = 0; i < feed.targets.size(); ++i)
    feeds.push_back(cast_to(feed.targets[i], targets_[i].dtype));
  for (std::size_t i = 0; i < targets_.size(); ++i) {
    if (!feed.weights.empty() && feed.share == 1) {
      feeds.push_back(cast_to(feed.weights[i], DType::f32));
      continue;
    }
    Tensor weights(DType::f32, {feed.samples});
    std::fill_n(weights.data<float>(), feed.samples, feed.share);
    for (std::int64_t row = 0; !feed.weights.empty() && row < feed.samples; ++row)
      weights.data<float>()[row] *= static_cast<float>(number_at(feed.weights[i], row));
    feeds.push_back(weights);
  }
  const std::vector<Tensor> results = (*callable)(feeds);
  const auto numbers = results.front().span<float>();
  return without_share({numbers.begin(), numbers.end()}, feed.share);
}

// What the samples themselves give: by their share they count in the gradients, and in means over batches
// once more.
std::vector<double> Trainer::without_share(std::vector<double> values, float share) const {
  const double penalty = values.size() > names_.size() ? values.back() : 0;
  values.resize(names_.size());
  if (share == 1) return values;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double unweighted = i == 0 ? penalty : 0;  // of a loss that counts as a whole
    if (share == 0) values[i] = 0;
    else if (weighted_[i]) values[i] = (values[i] - unweighted) / static_cast<double>(share) + unweighted;
  }
  return values;
}

std::vector<double> Trainer::train(const Feed& feed) { return run(train_, train_values_, update_, feed); }
std::vector<double> Trainer::test(const Feed& feed) { return run(test_, test_values_, {}, feed); }

Predictor::Predictor(ModelImpl& model) : model_(model), inputs_(input_slots(model)) {
  const Scope s = model.workspace().scope();
  Outputs fed;
  for (const KerasTensor& input : model.inputs()) fed.push_back(input.output());
  for (const Output& output : model.form({.scope = s.name_scope("prediction")}, fed)) {
    const Output inferred = inference_form(s, output);
    const bool is_fed = std::find(fed.begin(), fed.end(), inferred) != fed.end();
    outputs_.push_back(is_fed ? identity(s, inferred) : inferred);  // a run does not return what it is fed
  }
}

std::vector<Tensor> Predictor::predict(const std::vector<Tensor>& inputs) {
  Workspace& workspace = model_.workspace();
  workspace.initialize_variables();
  if (!callable_) {
    CallableSignature signature;
    for (const KerasTensor& input : model_.inputs()) signature.feeds.emplace_back(input.output());
    for (const Output& output : outputs_) signature.fetches.emplace_back(output);
    callable_ = workspace.session().make_callable(signature);
  }
  std::vector<Tensor> feeds;
  for (std::size_t i = 0; i < inputs.size(); ++i) feeds.push_back(cast_to(inputs[i], inputs_[i].dtype));
  return (*callable_)(feeds);
}

}  // namespace kolo::keras::detail
