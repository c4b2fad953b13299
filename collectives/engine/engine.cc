#include <kolo/collectives/engine/engine.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <sstream>
#include <utility>

#include <kolo/collectives/transport/wire.h>
#include <kolo/core/base/error.h>

namespace kolo::detail {
namespace {

constexpr char kMake[] = "make ";
constexpr char kRemove[] = "remove ";

std::vector<int> numbers_of(const std::string& text, char separator) {
  std::vector<int> numbers;
  std::istringstream items(text);
  for (std::string item; std::getline(items, item, separator);) numbers.push_back(std::stoi(item));
  return numbers;
}

std::vector<int> first_ranks(int count) {
  std::vector<int> ranks(count);
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

}  // namespace

std::string to_text(const std::vector<std::vector<int>>& lists) {
  std::string text;
  for (const auto& list : lists) text += fmt::format("{}{}", text.empty() ? "" : ";", fmt::join(list, ","));
  return text;
}

std::string payload_to_make(const std::vector<std::vector<int>>& lists) { return kMake + to_text(lists); }
std::string payload_to_remove(int id) { return fmt::format("{}{}", kRemove, id); }

Engine::Engine(const EngineOptions& options) : options_(options), rank_(0), size_(1) { make_set({0}); }

Engine::Engine(const EngineOptions& options, std::vector<std::string> hosts, CommThread& thread,
               Mailbox& mail, std::shared_ptr<Communicator> world, Allocator& fusion_memory)
    : options_(options),
      hosts_(std::move(hosts)),
      rank_(world->rank()),
      size_(world->size()),
      thread_(&thread),
      mail_(&mail),
      fusion_memory_(&fusion_memory),
      world_(std::move(world)) {
  make_set(first_ranks(size_));
  thread.set_resident(this);
}

std::shared_ptr<SetEngine> Engine::set(int id) {
  MutexLock lock(mutex_);
  const auto found = sets_.find(id);
  if (found == sets_.end()) throw InvalidArgumentError("there is no process set {}; it was removed", id);
  if (!found->second.engine)
    throw InvalidArgumentError("rank {} is not in process set {}, which has the ranks [{}]", rank_, id,
                               fmt::join(found->second.members, ","));
  return found->second.engine;
}

std::vector<int> Engine::members(int id) {
  MutexLock lock(mutex_);
  const auto found = sets_.find(id);
  if (found == sets_.end()) throw InvalidArgumentError("there is no process set {}; it was removed", id);
  return found->second.members;
}

// ---- The communication thread.

Resident::State Engine::advance(std::chrono::steady_clock::time_point now) {
  State state = State::idle;
  try {
    while (const auto mail = mail_->take()) dispatch(now, mail->from, mail->text);
    // A set may make others while it is advanced.
    for (std::size_t i = 0; i < engines_.size(); ++i) {  // NOLINT(modernize-loop-convert)
      const auto engine = engines_[i];
      if (const auto error = thread_->error(engine->id())) end(*engine, error);
      state = std::max(state, advance(*engine, now));
    }
  } catch (...) {  // of the mail, which all sets share
    for (const auto& engine : engines_) engine->break_off(std::current_exception());
  }
  return state;
}

Resident::State Engine::advance(SetEngine& engine, std::chrono::steady_clock::time_point now) {
  try {
    return engine.advance(now);
  } catch (...) {
    engine.fail(std::current_exception());
    return State::advanced;
  }
}

// The set's communication has failed elsewhere, e.g. in a schedule. The other ranks may know nothing of it;
// what the watchdog has given up it tells them itself.
void Engine::end(SetEngine& engine, const std::exception_ptr& error) {
  if (engine.size() == 1 || thread_->watchdog()->given_up()) engine.break_off(error);
  else if (failed_.insert(engine.id()).second) engine.fail(error);
}

void Engine::dispatch(std::chrono::steady_clock::time_point now, int from, const std::string& text) {
  ByteReader reader(text);
  const int id = reader.integer();
  const auto kind = static_cast<SetEngine::Message>(reader.integer());
  std::shared_ptr<SetEngine> engine;
  {
    MutexLock lock(mutex_);
    const auto found = sets_.find(id);
    if (found != sets_.end()) engine = found->second.engine;
    else if (id >= next_id_) early_[id].push_back({from, text});
  }
  if (!engine) return;
  const auto& members = engine->members();
  const auto place = std::find(members.begin(), members.end(), from);
  engine->receive(now, static_cast<int>(place - members.begin()), kind, reader.rest());
}

SetEngine::Setting Engine::setting(int id, std::vector<int> members) {
  SetEngine::Setting setting;
  setting.id = id;
  setting.rank = static_cast<int>(std::find(members.begin(), members.end(), rank_) - members.begin());
  setting.members = members;
  setting.make_sets = [this](const std::string& payload) { return make_sets(payload); };
  if (thread_ == nullptr) return setting;
  // Every rank takes the number, so that it means the same on all.
  setting.channel = thread_->open_channel(id);
  thread_->watchdog()->set_members(thread_->shared_number(setting.channel), members);
  if (setting.rank == static_cast<int>(members.size()) || members.size() == 1) return setting;
  setting.thread = thread_;
  setting.allocator = fusion_memory_;
  setting.hosts = hosts_;
  setting.communicator = id == 0 ? world_ : world_->subset(members, id);
  setting.post = [this, id, members](int to, SetEngine::Message kind, const std::string& bytes) {
    ByteWriter envelope;
    envelope.number(id);
    envelope.number(static_cast<int>(kind));
    mail_->post(members[to], envelope.take() + bytes);
  };
  return setting;
}

int Engine::make_set(std::vector<int> members) {
  int id = 0;
  {
    MutexLock lock(mutex_);
    for (const auto& [known, set] : sets_)
      if (set.members == members) return known;
    id = next_id_++;
  }
  auto place = setting(id, members);
  std::shared_ptr<SetEngine> engine;
  if (place.rank < static_cast<int>(members.size()))
    engine = std::make_shared<SetEngine>(std::move(place), options_);
  {
    MutexLock lock(mutex_);
    sets_[id] = {std::move(members), engine};
  }
  if (engine) engines_.push_back(engine);
  const auto now = std::chrono::steady_clock::now();
  if (const auto early = early_.extract(id))
    for (const auto& message : early.mapped()) dispatch(now, message.from, message.text);
  return id;
}

std::vector<std::int64_t> Engine::make_sets(const std::string& payload) {
  if (payload.rfind(kRemove, 0) == 0) {
    const int id = std::stoi(payload.substr(sizeof kRemove - 1));
    MutexLock lock(mutex_);
    const auto found = sets_.find(id);
    if (found == sets_.end()) return {};
    std::erase(engines_, found->second.engine);
    sets_.erase(found);
    return {};
  }
  std::vector<std::int64_t> ids;
  std::istringstream lists(payload.substr(sizeof kMake - 1));
  for (std::string list; std::getline(lists, list, ';');) ids.push_back(make_set(numbers_of(list, ',')));
  return ids;
}

void Engine::begin_close() {
  for (const auto& engine : engines_) engine->begin_close();
}

void Engine::close() {
  for (const auto& engine : engines_) engine->close();
}

void Engine::release() {
  engines_.clear();
  world_ = nullptr;
  MutexLock lock(mutex_);
  sets_.clear();
}

namespace {

struct CurrentEngine {
  Mutex mutex;
  std::shared_ptr<Engine> engine KOLO_GUARDED_BY(mutex);
};

// Never destroyed: exit handlers still ask for it.
CurrentEngine& current_slot() {
  static auto* const instance = new CurrentEngine;
  return *instance;
}

}  // namespace

std::shared_ptr<Engine> current_engine() {
  MutexLock lock(current_slot().mutex);
  if (!current_slot().engine)
    throw FailedPreconditionError("kolo is not initialised; call kolo::init() first");
  return current_slot().engine;
}

void set_current_engine(std::shared_ptr<Engine> engine) {
  MutexLock lock(current_slot().mutex);
  current_slot().engine = std::move(engine);
}

}  // namespace kolo::detail
