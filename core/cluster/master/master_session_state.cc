// What the tasks of a session write to files and read from them themselves, and the positions of their random
// ops. Contract: remote_session.h.
#include <exception>
#include <thread>
#include <utility>

#include <kolo/core/cluster/master/master_session_internal.h>
#include <kolo/core/cluster/master/task_error.h>

#include <kolo/core/cluster/rpc/shard_messages_internal.h>

namespace kolo::detail {
namespace {

std::vector<std::string> variable_names(const std::vector<SavedVariable>& variables) {
  std::vector<std::string> names;
  for (const SavedVariable& variable : variables) names.push_back(variable.name);
  return names;
}

template <typename Located>
std::map<std::string, std::vector<std::size_t>> by_task(const std::vector<Located>& located) {
  std::map<std::string, std::vector<std::size_t>> tasks;
  for (std::size_t i = 0; i < located.size(); ++i) tasks[located[i].task].push_back(i);
  return tasks;
}

// Of those that lie on one task.
struct Chosen {
  template <typename Located>
  Chosen(const std::vector<Located>& located, const std::vector<SavedVariable>& all,
         const std::vector<std::size_t>& places) {
    for (const std::size_t place : places) {
      keys.push_back(located[place].key);
      variables.push_back(all[place]);
    }
  }
  std::vector<VariableKey> keys;
  std::vector<SavedVariable> variables;
};

}  // namespace

void MasterSession::on_tasks(
    const ByTask& tasks, const std::function<void(std::size_t, const std::string&, Worker&)>& call) const {
  std::vector<std::exception_ptr> errors(tasks.size());
  {
    std::vector<std::jthread> threads;
    std::size_t place = 0;
    for (const auto& [task, unused] : tasks) {
      threads.emplace_back([&, place, &task = task] {
        try {
          call(place, task, *environment_.peers->worker(task));
        } catch (...) {
          errors[place] = from_task(task, std::current_exception());
        }
      });
      ++place;
    }
  }
  for (const std::exception_ptr& error : errors)
    if (error != nullptr) std::rethrow_exception(error);
}

std::vector<WrittenShard> MasterSession::write_shards(ShardPlace place,
                                                      const std::vector<SavedVariable>& variables,
                                                      const Deadline& deadline) {
  const Use use(*this, deadline);
  const std::vector<LocatedVariable> located = locate(variable_names(variables), use.deadline());
  const auto tasks = by_task(located);
  place.shard = 0, place.shards = static_cast<int>(tasks.size());
  // All of them look before one writes: in a folder of its own it would write for nobody.
  on_tasks(tasks, [&](std::size_t, const std::string&, Worker& worker) {
    worker.call<WriteShard>(to_def(options_.handle, place, {}, {}), use.deadline());
  });
  std::vector<WrittenShard> shards(tasks.size());
  on_tasks(tasks, [&](std::size_t i, const std::string& task, Worker& worker) {
    ShardPlace own = place;
    own.shard = static_cast<int>(i);
    const std::vector<std::size_t>& places = tasks.at(task);
    const Chosen chosen(located, variables, places);
    const auto request = to_def(options_.handle, own, chosen.keys, chosen.variables);
    shards[i] = from_def(worker.call<WriteShard>(request, use.deadline()), places.size(), false);
    shards[i].variables = places;
  });
  return shards;
}

void MasterSession::read_shards(const std::vector<SavedVariable>& variables, const Deadline& deadline) {
  const Use use(*this, deadline);
  const std::vector<LocatedVariable> located = locate(variable_names(variables), use.deadline());
  const auto tasks = by_task(located);
  on_tasks(tasks, [&](std::size_t, const std::string& task, Worker& worker) {
    const Chosen chosen(located, variables, tasks.at(task));
    worker.call<ReadShard>(to_def(options_.handle, chosen.keys, chosen.variables), use.deadline());
  });
}

bool MasterSession::has_random_ops(const GraphDef& graph) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(),
                     [](const NodeDef& node) { return node.attrs.count("seed") > 0; });
}

void MasterSession::start_random_ops(const std::string& task, Worker& worker, const Deadline& deadline) {
  std::map<std::string, std::uint64_t> starts;
  {
    const WakeOnStop wake(deadline.stop(), mutex_, random_told_);
    MutexLock lock(mutex_);
    while (random_being_told_.count(task) > 0) wait_for_change(random_told_, mutex_, deadline);
    if (random_tasks_.count(task) > 0) return;
    random_being_told_.insert(task);
    starts = random_starts_;
  }
  std::exception_ptr failure;
  try {
    if (!starts.empty()) worker.call<SetRandomPositions>(to_def(options_.handle, starts), deadline);
  } catch (...) {
    failure = std::current_exception();
  }
  {
    MutexLock lock(mutex_);
    random_being_told_.erase(task);
    if (failure == nullptr) random_tasks_.insert(task);
    random_told_.notify_all();
  }
  if (failure) std::rethrow_exception(failure);
}

std::map<std::string, std::uint64_t> MasterSession::random_positions(const Deadline& deadline) {
  const Use use(*this, deadline);
  check_whole();
  std::map<std::string, std::uint64_t> positions;
  std::set<std::string> tasks;
  {
    MutexLock lock(mutex_);
    positions = random_starts_;
    tasks = random_tasks_;
  }
  for (const std::string& task : tasks) {
    check_task(task, use.deadline());
    const auto worker = environment_.peers->worker(task);
    for (const auto& [node, position] :
         positions_from(worker->call<RandomPositions>(of_session(options_.handle), use.deadline())))
      positions[node] = position;
  }
  return positions;
}

void MasterSession::set_random_positions(const std::map<std::string, std::uint64_t>& positions,
                                         const Deadline& deadline) {
  const Use use(*this, deadline);
  check_whole();
  std::set<std::string> tasks;
  {
    MutexLock lock(mutex_);
    random_starts_ = positions;
    tasks = random_tasks_;
  }
  for (const std::string& task : tasks) {
    check_task(task, use.deadline());
    const auto worker = environment_.peers->worker(task);
    worker->call<SetRandomPositions>(to_def(options_.handle, positions), use.deadline());
  }
}

}  // namespace kolo::detail
