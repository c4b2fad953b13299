#include <kolo/core/cluster/worker/worker_session.h>

#include <fmt/format.h>

#include <random>
#include <utility>

#include <kolo/core/base/crc32c.h>
#include <kolo/core/base/error.h>

namespace kolo::detail {
namespace {

// Steps of which values are asked for and whose part has not begun: a master has few at a time.
constexpr std::size_t kMostWaiting = 10'000;

std::exception_ptr over(std::int64_t step) {
  return std::make_exception_ptr(ConsequenceError(Code::aborted, fmt::format("Step {} is over", step)));
}

}  // namespace

WorkerSession::WorkerSession(const WorkerSessionRequest& request, const TaskState& task)
    : handle_(request.session),
      master_(request.master),
      master_incarnation_(request.master_incarnation),
      config_(request.config),
      task_(task),
      own_variables_(request.config.isolate_session_state ? std::make_unique<TaskVariables>(task.task)
                                                          : nullptr),
      own_containers_(request.config.isolate_session_state ? std::make_unique<Containers>() : nullptr) {}

std::uint64_t WorkerSession::add_part(const PartRequest& request) {
  const PartSurroundings around{.devices = task_.devices,
                                .variables = variables(),
                                .containers = own_containers_ ? *own_containers_ : task_.containers,
                                .random_state = [this](const std::string& node, std::int64_t op_seed,
                                                       std::optional<std::int64_t> seed) -> RandomState& {
                                  return random_state(node, op_seed, seed);
                                },
                                .intra_op_threads = task_.intra_op_threads,
                                .master = master_,
                                .config = config_};
  auto part = std::make_shared<Part>(request, around);
  MutexLock lock(mutex_);
  if (closed_) std::rethrow_exception(closed_);
  parts_.emplace(next_part_, std::move(part));
  return next_part_++;
}

std::shared_ptr<Part> WorkerSession::part(std::uint64_t id) {
  MutexLock lock(mutex_);
  const auto found = parts_.find(id);
  if (found == parts_.end()) throw NotFoundError("session {} has no part {} on {}", handle_, id, task_.task);
  return found->second;
}

void WorkerSession::remove_part(std::uint64_t id) {
  MutexLock lock(mutex_);
  parts_.erase(id);
}

WorkerSession::Step& WorkerSession::step_locked(std::int64_t step) {
  if (closed_) std::rethrow_exception(closed_);
  if (over_.count(step) > 0) std::rethrow_exception(over(step));
  if (steps_.count(step) == 0) check_room();
  return steps_[step];
}

// Their number is bounded, for who asks may ask for steps that there never are.
void WorkerSession::check_room() {
  if (steps_.size() < kMostWaiting) return;
  throw ResourceExhaustedError("session {} has {} steps on {}, the most that it may", handle_, steps_.size(),
                               task_.task);
}

std::shared_ptr<StepExchange> WorkerSession::exchange(std::int64_t step) {
  MutexLock lock(mutex_);
  return step_locked(step).exchange;
}

std::shared_ptr<PartRun> WorkerSession::begin(std::int64_t number, std::shared_ptr<Part> part, Peers* peers,
                                              StepCancellation& cancellation) {
  std::shared_ptr<PartRun> run;
  std::vector<std::pair<std::int64_t, Step>> abandoned;
  {
    MutexLock lock(mutex_);
    Step& step = step_locked(number);
    if (step.run != nullptr) throw AbortedError("step {} of session {} runs already", number, handle_);
    step.run = run = std::make_shared<PartRun>(std::move(part), step.exchange, peers, task_.task);
    step.cancellation = &cancellation;
    abandoned = take_abandoned();
  }
  for (const auto& [other, waiting] : abandoned) waiting.exchange->end(over(other));
  return run;
}

// Those that were asked for values and whose part has not come: their masters have failed or gone.
std::vector<std::pair<std::int64_t, WorkerSession::Step>> WorkerSession::take_abandoned() {
  const auto now = Clock::now();
  std::vector<std::pair<std::int64_t, Step>> abandoned;
  for (auto step = steps_.begin(); step != steps_.end();) {
    if (step->second.run != nullptr || now - step->second.since <= task_.remembered) {
      ++step;
      continue;
    }
    note_over(step->first);
    abandoned.emplace_back(step->first, std::move(step->second));
    step = steps_.erase(step);
  }
  return abandoned;
}

void WorkerSession::note_over(std::int64_t step) {
  const auto now = Clock::now();
  if (over_.insert(step).second) over_since_.emplace_back(now, step);
  for (; !over_since_.empty() && now - over_since_.front().first > task_.remembered; over_since_.pop_front())
    over_.erase(over_since_.front().second);
}

void WorkerSession::end(std::int64_t step) {
  std::shared_ptr<StepExchange> exchange;
  {
    MutexLock lock(mutex_);
    const auto found = steps_.find(step);
    if (found == steps_.end()) return;
    exchange = found->second.exchange;
    steps_.erase(found);
    note_over(step);
  }
  exchange->end(over(step));
}

void WorkerSession::forget(std::int64_t step) {
  std::shared_ptr<StepExchange> exchange;
  {
    MutexLock lock(mutex_);
    const auto found = steps_.find(step);
    if (found == steps_.end()) return note_over(step);
    if (found->second.cancellation != nullptr) return found->second.cancellation->cancel(over(step));
    exchange = found->second.exchange;
    steps_.erase(found);
    note_over(step);
  }
  exchange->end(over(step));
}

void WorkerSession::close(const std::exception_ptr& reason) {
  std::vector<std::shared_ptr<StepExchange>> waiting;
  {
    MutexLock lock(mutex_);
    if (!closed_) closed_ = reason;
    for (auto& [number, step] : steps_) {
      if (step.cancellation != nullptr) step.cancellation->cancel(reason);
      else waiting.push_back(step.exchange);
    }
    parts_.clear();
  }
  for (const auto& exchange : waiting) exchange->end(reason);
}

void WorkerSession::append_waits(const std::vector<std::string>& workers,
                                 std::vector<TaskStatus::Wait>& waits) {
  std::vector<std::pair<std::int64_t, std::shared_ptr<PartRun>>> running;
  {
    MutexLock lock(mutex_);
    for (const auto& [number, step] : steps_)
      if (step.run != nullptr) running.emplace_back(number, step.run);
  }
  for (const auto& [number, run] : running) {
    TaskStatus::Wait like;
    like.session = handle_;
    like.step = number;
    run->append_waits(workers, like, waits);
  }
}

RandomState& WorkerSession::random_state(const std::string& node, std::int64_t op_seed,
                                         std::optional<std::int64_t> seed) {
  MutexLock lock(random_mutex_);
  auto& state = random_states_[node];
  if (!state) {
    // As in a local session: with the graph's seed alone each op has a sequence of its own, by its name.
    const bool seeded = seed.has_value() || op_seed != 0;
    const auto graph_seed = static_cast<std::uint64_t>(seeded ? seed.value_or(0) : std::random_device()());
    const auto own_seed =
        static_cast<std::uint64_t>(op_seed != 0 ? op_seed : crc32c(node.data(), node.size()));
    state = std::make_unique<RandomState>(graph_seed, own_seed);
    if (const auto start = random_starts_.find(node); start != random_starts_.end())
      state->set_position(start->second);
  }
  return *state;
}

std::map<std::string, std::uint64_t> WorkerSession::random_positions() {
  MutexLock lock(random_mutex_);
  std::map<std::string, std::uint64_t> positions;
  for (const auto& [node, state] : random_states_) positions[node] = state->position();
  return positions;
}

void WorkerSession::set_random_positions(const std::map<std::string, std::uint64_t>& positions) {
  MutexLock lock(random_mutex_);
  for (const auto& [node, position] : positions) {
    random_starts_[node] = position;
    const auto state = random_states_.find(node);
    if (state != random_states_.end()) state->second->set_position(position);
  }
}

}  // namespace kolo::detail
