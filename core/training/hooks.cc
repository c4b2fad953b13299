#include <kolo/core/training/hooks.h>

#include <fmt/format.h>

#include <chrono>
#include <exception>
#include <filesystem>
#include <map>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include <kolo/core/base/durable_file.h>
#include <kolo/core/base/error.h>
#include <kolo/core/base/exit_code.h>
#include <kolo/core/base/log.h>
#include <kolo/core/base/stop_time.h>
#include <kolo/core/graph/nodes_behind.h>
#include <kolo/core/ops/debugging.h>
#include <kolo/core/ops/variables.h>
#include <kolo/core/passes/update_guards.h>
#include <kolo/core/runtime/group.h>
#include <kolo/core/runtime/session_variables.h>
#include <kolo/core/training/checkpoint_files.h>
#include <kolo/core/training/folder_lock.h>
#include <kolo/core/training/global_step.h>
#include <kolo/core/training/non_finite.h>
#include <kolo/core/training/rank_state.h>

namespace kolo {

StepTimer::StepTimer(std::optional<double> every_secs, std::optional<std::int64_t> every_steps)
    : every_secs_(every_secs), every_steps_(every_steps) {
  if (every_secs && every_steps)
    throw InvalidArgumentError("Can not provide both every_secs and every_steps.");
  if (!every_secs && !every_steps)
    throw InvalidArgumentError("Either every_secs or every_steps should be provided.");
  if (every_secs && !(*every_secs > 0))
    throw InvalidArgumentError("every_secs is {}; it must be above 0", *every_secs);
  if (every_steps && *every_steps <= 0)
    throw InvalidArgumentError("every_steps is {}; it must be above 0", *every_steps);
}

bool StepTimer::is_due(std::int64_t step, Clock::time_point now) const {
  if (!last_step_) return true;
  if (step == *last_step_) return false;
  if (every_steps_) return step >= *last_step_ + *every_steps_;
  return std::chrono::duration<double>(now - last_time_).count() >= *every_secs_;
}

void StepTimer::fired(std::int64_t step, Clock::time_point now) {
  last_step_ = step;
  last_time_ = now;
}

CheckpointSaverHook::CheckpointSaverHook(CheckpointSaverOptions options)
    : options_(std::move(options)), timer_(options_.save_secs, options_.save_steps) {
  if (options_.saver && options_.scaffold)
    throw InvalidArgumentError("You cannot provide both saver and scaffold.");
  if (options_.scaffold) options_.saver = options_.scaffold->saver;
}

CheckpointSaverHook::~CheckpointSaverHook() = default;

// The folder first of all: nobody may change it between the restoring from it and the first save.
void CheckpointSaverHook::begin(Graph& graph) {
  global_step_ = require_global_step(graph, "CheckpointSaverHook");
  make_checkpoint_folder(options_.checkpoint_dir);
  lock_.reset();
  lock_ = std::make_unique<detail::FolderLock>(options_.checkpoint_dir);
  // Without the lock they could be another process's that is just writing them.
  if (lock_->is_held()) finish_cut_saves(options_.checkpoint_dir, options_.checkpoint_basename);
  for (const auto& listener : options_.listeners) listener->begin();
}

void CheckpointSaverHook::after_restore(Session&, const std::string& checkpoint) { restored_ = checkpoint; }

void CheckpointSaverHook::after_create_session(Session& session) {
  // Here and not in begin(): by now every hook has added its variables.
  if (!options_.saver) {
    options_.saver = std::make_shared<Saver>(session.graph());
    options_.saver->recover_last_checkpoints(
        paths_oldest_first(options_.checkpoint_dir, list_checkpoints(options_.checkpoint_dir)));
  }
  step_of_last_run_ = read_global_step(session, global_step_);
  needs_all_ranks_ = is_spread_over_ranks(session);
  timer_ = StepTimer(options_.save_secs, options_.save_steps);
  // Written once more, the only good checkpoint would be gone while its two files are replaced.
  const std::string restored = std::exchange(restored_, "");
  std::error_code error;
  if (restored.empty() || !std::filesystem::equivalent(folder_of(restored), options_.checkpoint_dir, error))
    return;
  options_.saver->adopt(restored);
  timer_.fired(step_of_last_run_);
}

SessionRunArgs CheckpointSaverHook::before_run(RunContext& context) {
  if (timer_.is_due(step_of_last_run_ + 1)) context.announce_save();
  return {};
}

void CheckpointSaverHook::after_run(RunContext& context, const RunValues& values) {
  const std::int64_t step = context.global_step().value();  // there is one, as begin() has seen
  // Between two updates that several runs make together a checkpoint would hold half of one.
  if (std::exchange(step_of_last_run_, step) == step) return;
  if (needs_all_ranks_ && values.gathered == nullptr) return;
  if (timer_.is_due(step) && write(context.session(), step, values.gathered)) context.request_stop();
}

void CheckpointSaverHook::save(Session& session, const GatheredState* gathered) {
  const std::int64_t step = read_global_step(session, global_step_);
  if (timer_.last_step() != step) write(session, step, gathered);
}

void CheckpointSaverHook::end(Session& session) {
  for (const auto& listener : options_.listeners)
    listener->end(session, read_global_step(session, global_step_));
  lock_.reset();
}

std::string CheckpointSaverHook::prefix() const {
  return (std::filesystem::path(options_.checkpoint_dir) / options_.checkpoint_basename).string();
}

bool CheckpointSaverHook::write(Session& session, std::int64_t step, const GatheredState* gathered) {
  if (const std::string damage = detail::non_finite_weight(session); !damage.empty()) {
    timer_.fired(step);
    log_error("step {} is not saved into {}: {}; what was saved before stays as it is", step,
              options_.checkpoint_dir, damage);
    return false;
  }
  for (const auto& listener : options_.listeners) listener->before_save(session, step);
  log_info("Saving checkpoints for {} into {}.", step, prefix());
  const auto begin = std::chrono::steady_clock::now();
  std::map<std::string, std::string> state;
  for (const SavedState& part : options_.saved_state) state[part.name] = part.save();
  options_.saver->save(session, prefix(), step, state, gathered,
                       {.before_publishing = [this] { lock_->require_unbroken(); }});
  detail::note_save(std::chrono::ceil<std::chrono::milliseconds>(std::chrono::steady_clock::now() - begin));
  timer_.fired(step);
  bool stops = false;
  for (const auto& listener : options_.listeners) stops |= listener->after_save(session, step);
  return stops;
}

StopAtStepHook::StopAtStepHook(StopAtStepOptions options)
    : num_steps_(options.num_steps), last_step_(options.last_step) {
  if (!num_steps_ && !last_step_)
    throw InvalidArgumentError("One of num_steps or last_step must be specified.");
  if (num_steps_ && last_step_)
    throw InvalidArgumentError("Only one of num_steps or last_step can be specified.");
}

void StopAtStepHook::begin(Graph& graph) { global_step_ = require_global_step(graph, "StopAtStepHook"); }

void StopAtStepHook::after_create_session(Session& session) {
  // After a recovery the count goes on from where the first session began.
  if (!last_step_) last_step_ = read_global_step(session, global_step_) + *num_steps_;
  detail::note_planned_steps(*last_step_);
}

SessionRunArgs StopAtStepHook::before_run(RunContext& context) {
  if (context.global_step().value() + 1 >= *last_step_) context.announce_last_step();
  return {};
}

void StopAtStepHook::after_run(RunContext& context, const RunValues&) {
  if (context.global_step().value() >= *last_step_) context.request_stop();
}

namespace {

constexpr char kText[] = "NaN loss during training.";

bool is_fed(const Feeds& feeds, const Output& tensor) {
  for (const auto& [target, value] : feeds)
    if (static_cast<const Output&>(target) == tensor || target.tensor_name == tensor.name()) return true;
  return false;
}

using Nodes = std::map<int, const Node*>;  // oldest first: inputs come before what they are for

// What can be computed by this rank alone: the others do not come to an op that all make together, which is
// stateful; and only what no branch of a `cond` skips can be asked for.
Outputs values_to_look_at(const Nodes& nodes, const Feeds& feeds) {
  const bool alone = world_group().size() == 1;
  Outputs values;
  std::set<const Node*> out_of_reach;
  for (const auto& [id, node] : nodes) {
    const OpSchema& schema = node->schema();
    const bool draws_alone = schema.is_variable_storage() || node->attrs().count("seed") > 0;
    bool reachable = node->branch() == nullptr && (alone || !schema.is_stateful() || draws_alone);
    for (const Output& input : node->inputs())
      reachable &= out_of_reach.count(input.node) == 0 || is_fed(feeds, input);
    for (const Node* before : node->control_inputs()) reachable &= out_of_reach.count(before) == 0;
    if (!reachable) out_of_reach.insert(node);
    for (int i = 0; reachable && !schema.is_variable_storage() && i < node->num_outputs(); ++i)
      if (is_floating(node->output_dtype(i))) values.push_back({node, i});
  }
  return values;
}

std::string in_variables(Session& session, const Nodes& nodes) {
  std::vector<Variable> variables = global_variables(session.graph());
  for (const Variable& variable : local_variables(session.graph())) variables.push_back(variable);
  std::erase_if(variables,
                [&](const Variable& variable) { return nodes.count(variable.ref().node->id()) == 0; });
  std::string found;
  detail::read_values(session, variables, [&](std::size_t i, const Tensor& value) {
    if (!value || !found.empty()) return;
    const std::string text = detail::non_finite_text(value);
    if (!text.empty())
      found = fmt::format("it comes from variable \"{}\", which holds {} since an earlier step",
                          variables[i].name(), text);
  });
  return found;
}

// Which came first of what made the loss: a fed value, a variable or an op.
std::string origin(Session& session, const Output& loss, const Feeds& feeds) {
  for (const auto& [target, value] : feeds) {
    const std::string name = target.node == nullptr ? target.tensor_name : target.name();
    // What was sent ahead lies in a GPU's memory: a fetch brings it home.
    const bool is_tensor_name = name.find(':') != std::string::npos;
    const auto values = session.run(std::vector<Fetch>{is_tensor_name ? name : name + ":0"}, feeds);
    const std::string text = detail::non_finite_text(values[0]);
    if (!text.empty()) return fmt::format("it comes from what was fed for \"{}\": {}", name, text);
  }
  const Nodes nodes =
      detail::nodes_of_run({loss.node}, [&feeds](const Output& value) { return is_fed(feeds, value); });
  if (std::string text = in_variables(session, nodes); !text.empty()) return text;
  const Outputs values = values_to_look_at(nodes, feeds);
  const auto results = session.run(std::vector<Fetch>(values.begin(), values.end()), feeds);
  for (std::size_t i = 0; i < results.size(); ++i) {
    const std::string text = detail::non_finite_text(results[i]);
    if (!text.empty())
      return fmt::format("the first op with a non-finite output is {}: {}", describe(*values[i].node), text);
  }
  return "computed once more, with other random numbers, it is finite";
}

std::string origin_or_reason(Session& session, const Output& loss, const Feeds& feeds) {
  try {
    return origin(session, loss, feeds);
  } catch (const std::exception& error) {
    return fmt::format("the op that it comes from was not found: {}", error.what());
  }
}

std::string next_step_text(Session& session) {
  const Variable step = find_global_step(session.graph());
  return step ? fmt::format(" in step {}", read_global_step(session, step) + 1) : "";
}

}  // namespace

void NanTensorHook::begin(Graph& graph) {
  if (!loss_ || &loss_.node->graph() != &graph)
    throw InvalidArgumentError("NanTensorHook: the loss is not of the graph that is trained");
  if (!options_.fail_on_nan_loss || guard_) return;
  const Output checked = check_numerics(Scope(graph).named("nan_tensor_hook"), loss_, kText);
  guard_ = Operation(checked);
  graph.add_to_collection(kUpdateGuards, *checked.node);
}

SessionRunArgs NanTensorHook::before_run(RunContext&) {
  SessionRunArgs args;
  if (guard_) args.fetches.emplace_back(guard_);
  else args.fetches.emplace_back(loss_);
  return args;
}

void NanTensorHook::after_run(RunContext& context, const RunValues& values) {
  if (guard_ || !detail::count_non_finite(values.results.at(0)).any()) return;
  log_error("Model diverged with loss = NaN.");
  context.request_stop();
}

void NanTensorHook::after_failure(RunContext& context, const SessionRunArgs& made, const Error& error) {
  const std::string_view text = error.what();
  if (!guard_ || error.code() != Code::invalid_argument || text.find(kText) == std::string_view::npos) return;
  log_error("Model diverged with loss = NaN.");
  Session& session = context.session();
  throw FailedPreconditionError("{} The loss \"{}\" is not finite{}, which was not applied; {}", kText,
                                loss_.name(), next_step_text(session),
                                origin_or_reason(session, loss_, made.feeds));
}

}  // namespace kolo
