#include <kolo/core/runtime/session_state.h>

#include <fmt/format.h>

#include <random>

#include <kolo/core/base/crc32c.h>
#include <kolo/core/device/device_allocator.h>
#include <kolo/core/device/device_values.h>
#include <kolo/core/ops/variables.h>

namespace kolo::detail {

VariableStorage& SessionState::variable(const Node& storage) {
  MutexLock lock(mutex_);
  return variable_locked(storage);
}

VariableStorage& SessionState::variable_locked(const Node& storage) {
  if (const auto found = variables_.find(storage.id()); found != variables_.end()) return *found->second;
  std::unique_ptr<VariableStorage> variable;
  const Node& whole = whole_storage(storage);
  if (&whole == &storage) {
    variable = std::make_unique<VariableStorage>();
    variable->name = storage.name();
    variable->device = &devices_.device_of(storage);
    const MemoryOwner owner(fmt::format("variable \"{}\"", storage.name()));
    variable->value =
        copy_to_device(Tensor::zeros(storage.output_dtype(0), storage.output_shape(0)), *variable->device);
  } else {
    variable = part_of_variable(storage, variable_locked(whole));
  }
  // Only now: one that could not be had leaves no trace.
  return *variables_.emplace(storage.id(), std::move(variable)).first->second;
}

bool SessionState::is_initialized(const Node& storage) {
  MutexLock lock(mutex_);
  const auto found = variables_.find(whole_storage(storage).id());
  return found != variables_.end() && found->second->initialized.load();
}

RandomState& SessionState::random_state(const std::string& node, std::int64_t op_seed) {
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

std::map<std::string, std::uint64_t> SessionState::random_positions() {
  MutexLock lock(mutex_);
  auto positions = random_starts_;
  for (const auto& [node, state] : random_states_) positions[node] = state->position();
  return positions;
}

void SessionState::set_random_positions(const std::map<std::string, std::uint64_t>& positions) {
  MutexLock lock(mutex_);
  random_starts_ = positions;
  for (const auto& [node, position] : positions) {
    const auto state = random_states_.find(node);
    if (state != random_states_.end()) state->second->set_position(position);
  }
}

std::shared_ptr<StepVote> SessionState::vote(const Node& node) {
  MutexLock lock(mutex_);
  auto& vote = votes_[node.id()];
  if (!vote) vote = vote_factory(node.op())(node, devices());
  return vote;
}

StepVotes SessionState::votes() {
  StepVotes all;
  for (int id = 0; id < graph_.num_nodes(); ++id)
    if (vote_factory(graph_.node(id).op()) != nullptr)
      if (auto found = vote(graph_.node(id))) all.push_back(std::move(found));
  return all;
}

void SessionState::clear() {
  containers_.clear();
  MutexLock lock(mutex_);
  variables_.clear();
  votes_.clear();
}

Tensor read_variable(const VariableStorage& variable) {
  return read_from_device(variable.value, *variable.device);
}

Tensor memory_for_value(const VariableStorage& variable) {
  if (variable.device->has_host_memory()) return variable.value;
  return Tensor(variable.value.dtype(), variable.value.shape());
}

void write_variable(VariableStorage& variable, const Tensor& value) {
  write_to_device(value, variable.value, *variable.device);
  variable.initialized = true;
}

}  // namespace kolo::detail
