#include <kolo/core/runtime/session.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <random>
#include <set>
#include <utility>

#include <kolo/core/base/crc32c.h>
#include <kolo/core/base/env.h>
#include <kolo/core/base/error.h>
#include <kolo/core/base/log.h>
#include <kolo/core/base/mutex.h>
#include <kolo/core/base/process.h>
#include <kolo/core/base/thread_pool.h>
#include <kolo/core/device/device_name.h>
#include <kolo/core/runtime/executor.h>
#include <kolo/core/runtime/plan.h>

namespace kolo {
namespace {

int chosen_intra_op_threads(int configured) {
  if (configured < 0)
    throw InvalidArgumentError("intra_op_parallelism_threads is {}; it must be at least 0", configured);
  if (configured > 0) return configured;
  return static_cast<int>(
      env_int64("OMP_NUM_THREADS", std::max(1, available_cores() / process().local_size), 1, 4096));
}

// What a plan is looked up by: the fetches, the fed tensors and their shapes.
using PlanKey = std::vector<std::int64_t>;

PlanKey key_of(const std::vector<Fetch>& fetches, const Feeds& feeds) {
  PlanKey key;
  for (const Fetch& fetch : fetches) {
    key.push_back(fetch.operation.node->id());
    key.push_back(fetch.output ? fetch.output.index : -1);
  }
  for (const auto& [value, tensor] : feeds) {
    key.push_back(
        -2);  // no dimension, index or id is −2: where one part ends and the next begins is always clear
    key.push_back(value.node->id());
    key.push_back(value.index);
    key.insert(key.end(), tensor.shape().dims().begin(), tensor.shape().dims().end());
  }
  return key;
}

void check_feeds(const Graph& graph, const Feeds& feeds) {
  std::set<std::pair<int, int>> seen;
  for (const auto& [value, tensor] : feeds) {
    if (!value) throw InvalidArgumentError("a feed names no tensor");
    if (&value.node->graph() != &graph)
      throw InvalidArgumentError("Tensor {} is not an element of this graph.", value.name());
    if (!value.node->schema().is_feedable())
      throw InvalidArgumentError("Tensor {} may not be fed.", value.name());
    if (!seen.insert({value.node->id(), value.index}).second)
      throw InvalidArgumentError("Endpoint \"{}\" fed more than once.", value.name());
    if (!tensor)
      throw InvalidArgumentError("the tensor fed for '{}' is empty: it has no buffer", value.name());
    if (tensor.dtype() != value.dtype())
      throw InvalidArgumentError("Cannot feed value of type {} for Tensor '{}', which has type {}",
                                 tensor.dtype(), value.name(), value.dtype());
    if (!tensor.shape().is_compatible_with(value.shape()))
      throw InvalidArgumentError("Cannot feed value of shape {} for Tensor '{}', which has shape '{}'",
                                 tensor.shape(), value.name(), value.shape());
  }
}

void check_fetches(const Graph& graph, const std::vector<Fetch>& fetches) {
  if (graph.num_nodes() == 0)
    throw FailedPreconditionError(
        "The Session graph is empty.  Add operations to the graph before calling run().");
  if (fetches.empty()) throw InvalidArgumentError("Must specify at least one target to fetch or execute.");
  for (const Fetch& fetch : fetches) {
    if (!fetch.operation) throw InvalidArgumentError("a fetch names neither a tensor nor an operation");
    if (&fetch.operation.node->graph() != &graph)
      throw InvalidArgumentError("Tensor {} is not an element of this graph.", fetch.operation.name());
    if (fetch.output && fetch.output.index >= fetch.operation.node->num_outputs())
      throw InvalidArgumentError("FetchOutputs {}: output index too large, must be < {}", fetch.output.name(),
                                 fetch.operation.node->num_outputs());
  }
}

std::string text_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& e) {
    return e.what();
  } catch (...) {
    return "an exception that is no std::exception";
  }
}

bool is_end_of_data(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const OutOfRangeError&) {
    return true;
  } catch (...) {
    return false;
  }
}

// What the other ranks are told when a kernel of the step has failed.
void tell_others(const std::vector<std::shared_ptr<StepAgreement>>& agreements,
                 const std::exception_ptr& error) {
  const std::string text = text_of(error);
  for (const auto& agreement : agreements)
    is_end_of_data(error) ? agreement->end_of_data_in_step(text) : agreement->fail(text);
}

// Begins the step's agreements and ends them, in whatever way the step ends. One step of a session has them
// at a time.
class StepOfAgreements {
 public:
  StepOfAgreements(Mutex& one_at_a_time, const std::vector<std::shared_ptr<StepAgreement>>& agreements)
      : agreements_(agreements) {
    if (!agreements.empty()) lock_ = std::unique_lock(one_at_a_time);
    for (const auto& agreement : agreements_) agreement->begin_step();
  }
  ~StepOfAgreements() {
    for (const auto& agreement : agreements_) agreement->end_step();
  }
  StepOfAgreements(const StepOfAgreements&) = delete;
  StepOfAgreements& operator=(const StepOfAgreements&) = delete;

 private:
  const std::vector<std::shared_ptr<StepAgreement>>& agreements_;
  std::unique_lock<Mutex> lock_;  // let go of even where begin_step throws
};

}  // namespace

class Session::Impl final : public PlanEnvironment {
 public:
  Impl(Graph& graph, SessionConfig config)
      : graph_(graph),
        config_(std::move(config)),
        intra_op_threads_(chosen_intra_op_threads(config_.intra_op_parallelism_threads)) {
    if (config_.inter_op_parallelism_threads < 0)
      throw InvalidArgumentError("inter_op_parallelism_threads is {}; it must be at least 0",
                                 config_.inter_op_parallelism_threads);
    inter_op_threads_ =
        config_.inter_op_parallelism_threads > 0 ? config_.inter_op_parallelism_threads : intra_op_threads_;
    if (inter_op_threads_ > 1) pool_ = std::make_unique<ThreadPool>("kolo-inter-op", inter_op_threads_ - 1);
    if (!config_.gpu_options.visible_device_list.empty() && process().rank == 0)
      log_info("there is no GPU in this process: visible_device_list \"{}\" is not looked at",
               config_.gpu_options.visible_device_list);
  }

  std::vector<Tensor> run(const std::vector<Fetch>& fetches, const Feeds& feeds, StepTrace* trace) {
    const Running running(*this);
    check_fetches(graph_, fetches);
    check_feeds(graph_, feeds);
    Plan& plan = plan_for(fetches, feeds);
    // Taken before the frame: buckets are memory that all frames of a schedule share.
    const StepOfAgreements step(training_step_, plan.agreements());
    auto frame = plan.take_frame();
    plan.bind_feeds(*frame, feeds);
    StepOptions options{.pool = pool_.get(), .intra_op_threads = intra_op_threads_, .trace = trace};
    if (!plan.agreements().empty())
      options.on_failure = [&](const std::exception_ptr& error) { tell_others(plan.agreements(), error); };
    try {
      run_step(plan, *frame, options);
    } catch (...) {
      plan.give_back(std::move(frame));
      throw;
    }
    if (trace != nullptr)
      for (const auto& agreement : plan.agreements()) agreement->append_trace(*trace);
    std::vector<Tensor> results;
    for (std::size_t i = 0; i < fetches.size(); ++i)
      if (!plan.was_computed(*frame, i)) {
        plan.give_back(std::move(frame));
        throw InvalidArgumentError(
            "Retval[{}] does not have value: {} is of a branch that this run did not take", i,
            fetches[i].output ? fetches[i].output.name() : fetches[i].operation.name());
      }
    for (const int value : plan.fetches())
      results.push_back(value < 0 ? Tensor() : frame->values[value].clone());
    plan.give_back(std::move(frame));
    return results;
  }

  void close() {
    MutexLock lock(mutex_);
    closed_ = true;
    while (runs_ > 0) idle_.wait(mutex_);
    plans_.clear();
    variables_.clear();
    agreements_.clear();
  }

  Graph& graph() { return graph_; }

  VariableStorage& variable(const Node& storage) override {
    MutexLock lock(mutex_);
    auto& variable = variables_[storage.id()];
    if (!variable) {
      variable = std::make_unique<VariableStorage>();
      variable->name = storage.name();
      variable->value = Tensor::zeros(storage.output_dtype(0), storage.output_shape(0));
    }
    return *variable;
  }

  RandomState& random_state(const std::string& node, std::int64_t op_seed) override {
    MutexLock lock(mutex_);
    auto& state = random_states_[node];
    if (!state) {
      // Without any seed the numbers differ from session to session; with the graph's seed alone each op has
      // a sequence of its own, by its name, so that adding an op does not change the others'.
      const bool seeded = graph_.seed().has_value() || op_seed != 0;
      const auto graph_seed =
          static_cast<std::uint64_t>(seeded ? graph_.seed().value_or(0) : std::random_device()());
      const auto own_seed =
          static_cast<std::uint64_t>(op_seed != 0 ? op_seed : crc32c(node.data(), node.size()));
      state = std::make_unique<RandomState>(graph_seed, own_seed);
      const auto start = random_starts_.find(node);
      if (start != random_starts_.end()) state->set_position(start->second);
    }
    return *state;
  }

  std::map<std::string, std::uint64_t> random_positions() {
    MutexLock lock(mutex_);
    auto positions = random_starts_;
    for (const auto& [node, state] : random_states_) positions[node] = state->position();
    return positions;
  }

  void set_random_positions(const std::map<std::string, std::uint64_t>& positions) {
    MutexLock lock(mutex_);
    random_starts_ = positions;
    for (const auto& [node, position] : positions) {
      const auto state = random_states_.find(node);
      if (state != random_states_.end()) state->second->set_position(position);
    }
  }

  std::shared_ptr<StepAgreement> agreement(const Node& node) override {
    MutexLock lock(mutex_);
    auto& agreement = agreements_[node.id()];
    if (!agreement) agreement = agreement_factory(node.op())(node);
    return agreement;
  }

  std::vector<std::shared_ptr<StepAgreement>> agreements() {
    std::vector<std::shared_ptr<StepAgreement>> all;
    for (int id = 0; id < graph_.num_nodes(); ++id)
      if (agreement_factory(graph_.node(id).op()) != nullptr)
        if (auto found = agreement(graph_.node(id))) all.push_back(std::move(found));
    return all;
  }

  std::vector<std::string> devices() const override { return {local_device_name("CPU", 0)}; }
  bool allow_soft_placement() const override { return config_.allow_soft_placement; }
  int intra_op_threads() const override { return intra_op_threads_; }
  int inter_op_threads() const { return inter_op_threads_; }

 private:
  // Counts a run, so that close() can wait for it.
  class Running {
   public:
    explicit Running(Impl& session) : session_(session) {
      MutexLock lock(session_.mutex_);
      if (session_.closed_) throw FailedPreconditionError("Attempted to use a closed Session.");
      ++session_.runs_;
    }
    ~Running() {
      MutexLock lock(session_.mutex_);
      if (--session_.runs_ == 0) session_.idle_.notify_all();
    }

   private:
    Impl& session_;
  };

  Plan& plan_for(const std::vector<Fetch>& fetches, const Feeds& feeds) {
    const PlanKey key = key_of(fetches, feeds);
    // Held while compiling: a second run with the same signature waits for the plan instead of making it
    // again.
    MutexLock compiling(compile_mutex_);
    auto& plan = plans_[key];
    if (!plan) {
      StepSignature signature;
      for (const Fetch& fetch : fetches)
        signature.fetched.push_back(fetch.output), signature.targets.push_back(fetch.operation.node);
      for (const auto& [value, tensor] : feeds) signature.fed.push_back({value, tensor.shape()});
      try {
        plan = Plan::compile(signature, *this);
      } catch (...) {
        plans_.erase(key);
        throw;
      }
    }
    return *plan;
  }

  Graph& graph_;
  const SessionConfig config_;
  const int intra_op_threads_;
  int inter_op_threads_ = 1;
  std::unique_ptr<ThreadPool> pool_;

  Mutex compile_mutex_;
  std::map<PlanKey, std::unique_ptr<Plan>> plans_;  // by compile_mutex_, or by close() once no run is left
  Mutex training_step_;

  Mutex mutex_;
  CondVar idle_;
  bool closed_ KOLO_GUARDED_BY(mutex_) = false;
  int runs_ KOLO_GUARDED_BY(mutex_) = 0;
  std::map<int, std::unique_ptr<VariableStorage>> variables_ KOLO_GUARDED_BY(mutex_);
  std::map<std::string, std::unique_ptr<RandomState>> random_states_ KOLO_GUARDED_BY(mutex_);
  std::map<std::string, std::uint64_t> random_starts_ KOLO_GUARDED_BY(mutex_);
  std::map<int, std::shared_ptr<StepAgreement>> agreements_ KOLO_GUARDED_BY(mutex_);
};

Session::Session(Graph& graph, SessionConfig config)
    : impl_(std::make_unique<Impl>(graph, std::move(config))) {}
Session::~Session() { impl_->close(); }

std::vector<Tensor> Session::run(const std::vector<Fetch>& fetches, const Feeds& feeds, StepTrace* trace) {
  return impl_->run(fetches, feeds, trace);
}
void Session::close() { impl_->close(); }
Graph& Session::graph() const { return impl_->graph(); }
VariableStorage& Session::variable(const Node& storage) { return impl_->variable(storage); }
std::map<std::string, std::uint64_t> Session::random_positions() const { return impl_->random_positions(); }
void Session::set_random_positions(const std::map<std::string, std::uint64_t>& positions) {
  impl_->set_random_positions(positions);
}
std::shared_ptr<StepAgreement> Session::agreement(const Node& node) { return impl_->agreement(node); }
std::vector<std::shared_ptr<StepAgreement>> Session::agreements() { return impl_->agreements(); }
int Session::intra_op_threads() const { return impl_->intra_op_threads(); }
int Session::inter_op_threads() const { return impl_->inter_op_threads(); }

}  // namespace kolo
