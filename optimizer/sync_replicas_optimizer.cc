#include <kolo/optimizer/sync_replicas_optimizer.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>
#include <stop_token>
#include <thread>
#include <utility>

#include <kolo/core/base/env.h>
#include <kolo/core/base/error.h>
#include <kolo/core/base/log.h>
#include <kolo/core/base/mutex.h>
#include <kolo/core/base/stop_signal.h>
#include <kolo/core/device/device_name.h>
#include <kolo/core/graph/indexed_slices.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/math.h>
#include <kolo/optimizer/optimizer_internal.h>

namespace kolo {

struct SyncReplicasOptimizer::Nodes {
  Nodes(Graph& of_all, FIFOQueue of_tokens, const Variable& step)
      : graph(of_all), tokens(std::move(of_tokens)), global_step(step) {}
  Graph& graph;
  FIFOQueue tokens;
  Variable global_step;
  Variable local_step;
  Variable local_generation;  // of the resets that came before this worker's initialization
  Variable last_token;
  Output generation;  // of the queue: how many resets there were
  Output next_generation;
  std::vector<Operation> resets;  // of what an earlier chief has left
  Operation chief_init;
  Operation local_init;
  Operation update;
  Operation close;
};

namespace {

constexpr char kTokens[] = "sync_token_q";
constexpr char kLocalStep[] = "sync_rep_local_step";
constexpr char kLocalGeneration[] = "sync_rep_local_generation";
constexpr char kLastToken[] = "sync_rep_last_token";

// Accumulators and queues lie on hosts: on the CPU of the task that the variable was asked to be on.
Scope beside(Graph& graph, const Variable& variable) {
  DeviceSpec spec = parse_device_spec(variable.ref().node->requested_device()).value_or(DeviceSpec());
  spec.type = "CPU";
  spec.index = 0;
  return Scope(graph).device(spec.to_string());
}

Output as_i64(const Scope& s, Output step) {
  return step.dtype() == DType::i64 ? step : cast(s, step, DType::i64);
}

// The step as it is when all of `before` is done, `count` times.
Output repeated_step(const Scope& s, const Variable& global_step, const std::vector<Operation>& before,
                     std::int64_t count) {
  const Output now = as_i64(s, identity(s.control_dependencies(before), global_step.read()));
  return add(s, zeros(s, DType::i64, {count}), now);
}

Output number(const Scope& s, std::int64_t value) { return constant(s, Tensor::scalar(value)); }

// A local number, on the task of the session's master.
Variable local_number(const Scope& s, const std::string& name) {
  return Variable(s.named(name), number(s.named(name + "/initial_value"), 0),
                  {.trainable = false, .local = true});
}

template <typename Accumulator>
void add_resets(const Scope& s, const Accumulator& accumulator, Output global_step, Output generation,
                std::vector<Operation>& resets) {
  const Operation emptied = reset_accumulator(s, accumulator, generation);
  resets.push_back(set_global_step(s.control_dependencies({emptied}), accumulator, global_step));
}

void check(const GradientPair& pair) {
  detail::check_alike(pair);
  if (const DType dtype = pair.variable.dtype(); dtype != DType::f32 && dtype != DType::f64)
    throw InvalidArgumentError("{} is {}; SyncReplicasOptimizer sums gradients of float and double",
                               pair.variable.name(), dtype);
}

void check(std::span<const GradientPair> gradients, const ApplyOptions& options) {
  if (gradients.empty()) throw InvalidArgumentError("Must supply at least one variable");
  if (!options.global_step) throw InvalidArgumentError("Global step is required to check staleness");
  for (const GradientPair& pair : gradients)
    if (pair.gradient) check(pair);
  if (std::none_of(gradients.begin(), gradients.end(), [](const auto& pair) { return bool(pair.gradient); }))
    throw InvalidArgumentError("No gradients provided for any variable: {}.",
                               detail::variable_list(gradients));
}

}  // namespace

SyncReplicasOptimizer::SyncReplicasOptimizer(std::unique_ptr<Optimizer> inner, int replicas_to_aggregate,
                                             int total_num_replicas, SyncReplicasOptions options)
    : Optimizer(inner->name()),
      inner_(std::move(inner)),
      replicas_to_aggregate_(replicas_to_aggregate),
      total_num_replicas_(total_num_replicas == 0 ? replicas_to_aggregate : total_num_replicas),
      options_(options) {
  if (replicas_to_aggregate_ < 1 || total_num_replicas_ < 1)
    throw InvalidArgumentError("{} replicas to aggregate of {}; both must be at least 1",
                               replicas_to_aggregate_, total_num_replicas_);
  log_info("SyncReplicasV2: replicas_to_aggregate={}; total_num_replicas={}", replicas_to_aggregate_,
           total_num_replicas_);
}

std::vector<GradientPair> SyncReplicasOptimizer::compute_gradients(Scope& s, Output loss,
                                                                   std::span<const Variable> variables,
                                                                   const ComputeGradientsOptions& options) {
  return inner_->compute_gradients(s, loss, variables, options);
}

Operation SyncReplicasOptimizer::apply_gradients(Scope& s, std::span<const GradientPair> gradients,
                                                 const ApplyOptions& options) {
  check(gradients, options);
  if (nodes_)
    throw FailedPreconditionError("apply_gradients was called twice; a SyncReplicasOptimizer has one step");
  Graph& graph = s.graph();
  const Variable& step = options.global_step;
  const Scope top(graph);
  auto nodes = std::make_shared<Nodes>(graph,
                                       FIFOQueue(beside(graph, step).named(kTokens), {DType::i64},
                                                 {.shapes = {Shape()}, .shared_name = kTokens}),
                                       step);
  nodes->local_step = local_number(top, kLocalStep);
  nodes->local_generation = local_number(top, kLocalGeneration);
  nodes->last_token = local_number(top, kLastToken);
  const Scope chief = s.without_control_dependencies().name_scope("sync_replicas_chief");
  nodes->generation = queue_generation(chief, nodes->tokens);
  nodes->next_generation = add(chief, nodes->generation, number(chief, 1));

  const Scope worker = s.name_scope("sync_replicas");
  std::vector<GradientPair> means;
  std::vector<Operation> pushes;
  for (const GradientPair& pair : gradients) {
    if (pair.gradient) pushes.push_back(add_push(worker, pair, *nodes, means));
    else means.push_back(pair);
  }
  const Operation taken = add_taken(worker.control_dependencies(pushes), *nodes);
  add_update(s.without_control_dependencies(), chief, means, options, *nodes);
  nodes_ = std::move(nodes);
  return taken;
}

// A worker that took two tokens of one step would add two gradients to the next update, and another one, for
// which no token was left, none. Where an update has as many gradients as there are workers, or fewer, each
// takes one token of each step: those of the step that it has had it leaves to the others. The newest: a
// worker that has fallen behind would else push gradients of old steps only. None needs those of older ones
// then, for there is one of the newest for each.
Operation SyncReplicasOptimizer::add_taken(const Scope& s, const Nodes& nodes) const {
  const bool one_each = total_num_replicas_ >= replicas_to_aggregate_;
  const Output than =
      one_each ? nodes.last_token.read() : number(s, std::numeric_limits<std::int64_t>::min());
  const Output token = dequeue_newest(s, nodes.tokens, than, nodes.local_generation.read());
  return group(s.named("train"),
               {assign(s, nodes.local_step, token).node, assign(s, nodes.last_token, token).node});
}

// Adds the pair with the mean of all workers' gradients to `means`.
Operation SyncReplicasOptimizer::add_push(const Scope& s, const GradientPair& pair, Nodes& nodes,
                                          std::vector<GradientPair>& means) const {
  const Variable& variable = pair.variable;
  const Scope there = beside(s.graph(), variable);
  const Scope named = there.named(variable.name() + "/grad_accum");
  const AccumulatorOptions options{.ordered = options_.ordered};
  const Output step = as_i64(there, nodes.global_step.read());
  if (const auto slices = indexed_slices(pair.gradient)) {
    const SparseConditionalAccumulator sum(named, variable.dtype(), variable.shape(), options);
    add_resets(there, sum, step, nodes.next_generation, nodes.resets);
    means.push_back({to_dense(there, take_grad(there, sum, replicas_to_aggregate_)), variable});
    return apply_grad(s, sum, *slices, nodes.local_step.read(), nodes.local_generation.read());
  }
  const ConditionalAccumulator sum(named, variable.dtype(), variable.shape(), options);
  add_resets(there, sum, step, nodes.next_generation, nodes.resets);
  means.push_back({take_grad(there, sum, replicas_to_aggregate_), variable});
  return apply_grad(s, sum, pair.gradient, nodes.local_step.read(), nodes.local_generation.read());
}

void SyncReplicasOptimizer::add_update(const Scope& s, const Scope& chief,
                                       std::span<const GradientPair> means, const ApplyOptions& options,
                                       Nodes& nodes) {
  Scope as_if_alone = s;  // so that nodes and slots are named as they are without replicas
  const Operation applied = inner_->apply_gradients(as_if_alone, means, options);
  const int count = std::max(replicas_to_aggregate_, total_num_replicas_);
  nodes.update =
      enqueue_many(chief, nodes.tokens, {repeated_step(chief, nodes.global_step, {applied}, count)});
  nodes.close = close_queue(chief, nodes.tokens);
  // Who finds the new generation has found all accumulators and the step reset as well: the queue, which
  // tells it, is the last. Whoever began before pushes or takes a token of an older one and begins anew.
  const Operation reset =
      reset_queue(chief.control_dependencies(nodes.resets), nodes.tokens,
                  std::string(kTokens) + " was reset by the chief", nodes.next_generation);
  nodes.local_init = add_local_init(chief, nodes);
  nodes.chief_init =
      group(chief.named("init"), {reset, add_local_init(chief.control_dependencies({reset}), nodes)});
}

// The step as it was not before the generation was told: a chief that begins anew may restore another one.
Operation SyncReplicasOptimizer::add_local_init(const Scope& s, const Nodes& nodes) {
  const Scope there = s.colocate_with(nodes.tokens.handle());
  const Output generation = queue_generation(s, nodes.tokens);
  const Output step =
      as_i64(s, identity(there.control_dependencies({generation.node}), nodes.global_step.read()));
  return group(s, {assign(s, nodes.local_generation, generation).node, assign(s, nodes.local_step, step).node,
                   assign(s, nodes.last_token, add(s, step, number(s, -1))).node});
}

const SyncReplicasOptimizer::Nodes& SyncReplicasOptimizer::nodes() const {
  if (!nodes_) throw FailedPreconditionError("Should be called after apply_gradients().");
  return *nodes_;
}

Operation SyncReplicasOptimizer::chief_init_op() const { return nodes().chief_init; }
Operation SyncReplicasOptimizer::local_step_init_op() const { return nodes().local_init; }
Operation SyncReplicasOptimizer::update_op() const { return nodes().update; }
Operation SyncReplicasOptimizer::close_op() const { return nodes().close; }

Operation SyncReplicasOptimizer::init_tokens_op(int num_tokens) const {
  if (!nodes_)
    throw FailedPreconditionError("get_init_tokens_op() should be called after apply_gradients().");
  const int given = num_tokens == -1 ? replicas_to_aggregate_ : num_tokens;
  const int needed = replicas_to_aggregate_ - total_num_replicas_;
  if (given < 0 || given < needed)
    throw InvalidArgumentError("Too few tokens to finish the first step: {} (given) vs {} (needed)", given,
                               std::max(needed, 0));
  const Scope s = Scope(nodes_->graph).name_scope("sync_replicas_tokens");
  return enqueue_many(s, nodes_->tokens, {repeated_step(s, nodes_->global_step, {}, given)});
}

namespace {

constexpr std::chrono::seconds kPatience(10);
constexpr std::chrono::milliseconds kPause(20);

// Asked to stop, a worker finishes its step. Where the others stop before theirs, no token comes any more:
// the run that waits for one is cancelled then. All that it has made is pushed or counts for nothing, so a
// step is either applied whole by the chief, or not at all.
class PatientStop {
 public:
  /// What stops the run that begins now.
  std::stop_token begin_run() {
    MutexLock lock(mutex_);
    run_ = std::stop_source();
    begin_ = Clock::now();
    running_ = true;
    return run_.get_token();
  }
  /// True if the run was stopped from here.
  bool end_run() {
    MutexLock lock(mutex_);
    running_ = false;
    longest_ = std::max(longest_ * kForgets, Seconds(Clock::now() - begin_));
    return run_.stop_requested();
  }
  /// Until `stop`. On a thread of its own: a handler of signals can wake nobody.
  void watch(const std::stop_token& stop) {
    const std::stop_callback wake(stop, [this] { changed_.notify_all(); });
    MutexLock lock(mutex_);
    while (!stop.stop_requested()) {
      const auto now = Clock::now();
      if (!stop_signal_received()) asked_ = now;
      const auto since = std::max(asked_, begin_);
      if (running_ && now - since > std::min(std::max(kLeast, kSteps * longest_), most_)) run_.request_stop();
      changed_.wait_until(mutex_, now + kPeriod);
    }
  }

 private:
  using Clock = std::chrono::steady_clock;
  using Seconds = std::chrono::duration<double>;
  static constexpr std::chrono::milliseconds kPeriod{50};
  static constexpr Seconds kLeast{1};
  static constexpr double kSteps = 2, kForgets = 0.95;  // a first step that took long counts ever less

  // kolorun ends the ranks when its time for a stop is over, and the chief has to save before.
  static constexpr double kShare = 0.4, kYear = 365.0 * 24 * 3600;
  const Seconds most_{std::max(kLeast.count(), kShare* env_double("KOLO_STOP_GRACE_S", kYear, 0, kYear))};

  Mutex mutex_;
  CondVar changed_;
  std::stop_source run_ KOLO_GUARDED_BY(mutex_);
  bool running_ KOLO_GUARDED_BY(mutex_) = false;
  Clock::time_point begin_ KOLO_GUARDED_BY(mutex_) = Clock::now(), asked_ KOLO_GUARDED_BY(mutex_) = begin_;
  Seconds longest_ KOLO_GUARDED_BY(mutex_){0};  // of the last runs
};

class SyncReplicasHook final : public SessionRunHook {
 public:
  /// tokens: of the chief alone.
  SyncReplicasHook(const SyncReplicasOptimizer& optimizer, Output generation, Operation tokens)
      : init_(tokens ? optimizer.chief_init_op() : optimizer.local_step_init_op()),
        update_(optimizer.update_op()),
        close_(optimizer.close_op()),
        generation_(generation),
        tokens_(tokens) {}

  void after_create_session(Session& session, Coordinator& coordinator) override {
    check_ready(session);
    if (!tokens_) wait_for_the_chief(session);
    session.run(init_);
    coordinator.start("sync_replicas_stop", [this](const std::stop_token& stop) { stop_.watch(stop); });
    if (!tokens_) return;
    session.run(tokens_);
    coordinator.start("sync_replicas", [this, &session, &coordinator](const std::stop_token& stop) {
      update(session, coordinator, stop);
    });
  }

  SessionRunArgs before_run(RunContext& /*context*/) override {
    return {.fetches = {}, .feeds = {}, .options = {.stop_token = stop_.begin_run()}};
  }
  void after_run(RunContext& /*context*/, const RunValues& /*values*/) override { stop_.end_run(); }
  void after_failure(RunContext& context, const SessionRunArgs& /*made*/, const Error& error) override {
    if (stop_.end_run() && error.code() == Code::cancelled) context.request_stop();
  }

 private:
  static void check_ready(Session& session) {
    std::string missing;
    for (const std::string& name : report_uninitialized_variables(session, global_variables(session.graph())))
      missing += (missing.empty() ? "" : ", ") + name;
    if (!missing.empty())
      throw FailedPreconditionError(
          "Init operations did not make model ready for SyncReplicasOptimizer local_init. Variables not "
          "initialized: {}",
          missing);
  }

  // A worker finds the variables that the chief has made before the chief has made the first reset, which
  // would end what the worker begins meanwhile, and make it begin anew. A chief that takes longer does just
  // that.
  void wait_for_the_chief(Session& session) const {
    const auto end = std::chrono::steady_clock::now() + kPatience;
    while (session.run(generation_).value<std::int64_t>() == 0 && std::chrono::steady_clock::now() < end)
      std::this_thread::sleep_for(kPause);
  }

  // Until a stop is asked for. Who waits for a token then gets none any more.
  void update(Session& session, const Coordinator& coordinator, const std::stop_token& stop) const {
    try {
      while (true) session.run({update_}, {}, {.stop_token = stop});
    } catch (const CancelledError&) {
      if (!stop.stop_requested()) throw;
    }
    if (!coordinator.error_token().stop_requested()) session.run(close_);
  }

  const Operation init_;
  const Operation update_;
  const Operation close_;
  const Output generation_;
  const Operation tokens_;
  PatientStop stop_;
};

}  // namespace

std::shared_ptr<SessionRunHook> SyncReplicasOptimizer::make_session_run_hook(bool is_chief, int num_tokens) {
  const Output generation = nodes().generation;
  return std::make_shared<SyncReplicasHook>(*this, generation,
                                            is_chief ? init_tokens_op(num_tokens) : Operation());
}

}  // namespace kolo
