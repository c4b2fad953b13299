#include <kolo/core/kernels/queue.h>

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include <kolo/core/base/error.h>

namespace kolo::detail {
namespace {

template <typename T, typename TextOf>
std::string listed(const std::vector<T>& things, TextOf text_of) {
  std::string text;
  for (const T& thing : things) text += (text.empty() ? "" : ", ") + std::string(text_of(thing));
  return text;
}
std::string types_of(const ElementSpec& spec) {
  return listed(spec.types, [](DType type) { return tf_name(type); });
}
std::string shapes_of(const ElementSpec& spec) {
  return fmt::format("[{}]", listed(spec.shapes, [](const Shape& shape) { return shape.to_string(); }));
}

template <typename T>
void check_same(const std::string& queue, const char* what, const T& has, const char* verb,
                const T& requested) {
  if (has != requested)
    throw InvalidArgumentError("Shared queue '{}' has {} {} but requested {} {} {}", queue, what, has, what,
                               verb, requested);
}

std::exception_ptr cancelled(const char* what) {
  return std::make_exception_ptr(CancelledError("{} operation was cancelled", what));
}

}  // namespace

void QueueState::check_shared_by(const Node& node) const {
  const ElementSpec spec = element_spec(node.attr<std::vector<std::string>>("component_types"),
                                        node.attr<std::vector<std::int64_t>>("shapes"));
  check_same(name_, "capacity", capacity_, "was", node.attr<std::int64_t>("capacity"));
  check_same(name_, "component types", types_of(spec_), "were", types_of(spec));
  check_same(name_, "component shapes", shapes_of(spec_), "were", shapes_of(spec));
}

void QueueState::tell(const Finished& finished) {
  for (const auto& [client, error] : finished) client->finished(error);
}

void QueueState::put(QueueClient& client) {
  Finished finished;
  {
    MutexLock lock(mutex_);
    if (closed_) throw CancelledError("FIFOQueue '{}' is closed.", name_);
    puts_.push_back(&client);
    move_all(finished);
  }
  tell(finished);
}

void QueueState::take(QueueClient& client, std::size_t count, bool exactly) {
  Finished finished;
  client.elements.clear();
  {
    MutexLock lock(mutex_);
    takes_.push_back({&client, count, exactly});
    move_all(finished);
  }
  tell(finished);
}

void QueueState::take_newest(QueueClient& client, std::int64_t than, std::int64_t generation) {
  Finished finished;
  client.elements.clear();
  {
    MutexLock lock(mutex_);
    if (generation != generation_) throw AbortedError("{}", reset_text_);
    takes_.push_back({.client = &client, .count = 1, .exactly = true, .than = than});
    move_all(finished);
  }
  tell(finished);
}

void QueueState::cancel(QueueClient& client) {
  Finished finished;
  {
    MutexLock lock(mutex_);
    const auto put = std::find(puts_.begin(), puts_.end(), &client);
    const auto take = std::find_if(takes_.begin(), takes_.end(),
                                   [&](const Take& waiting) { return waiting.client == &client; });
    if (put != puts_.end()) {
      finished.emplace_back(&client, cancelled("Enqueue"));
      puts_.erase(put);
    } else if (take != takes_.end()) {
      give_back(client);
      finished.emplace_back(&client, cancelled("Dequeue"));
      takes_.erase(take);
    }
    move_all(finished);  // for who stood behind it
  }
  tell(finished);
}

void QueueState::close(bool cancel_pending_puts) {
  Finished finished;
  {
    MutexLock lock(mutex_);
    if (closed_) throw AbortedError("Queue '{}' is already closed.", name_);
    closed_ = true;
    if (cancel_pending_puts) {
      for (QueueClient* client : puts_) finished.emplace_back(client, cancelled("Enqueue"));
      puts_.clear();
    }
    move_all(finished);
  }
  tell(finished);
}

void QueueState::reset(const std::string& text, std::optional<std::int64_t> generation) {
  Finished finished;
  {
    MutexLock lock(mutex_);
    generation_ = generation.value_or(generation_);
    reset_text_ = text;
    empty(finished, [&](const char*) { return std::make_exception_ptr(AbortedError("{}", text)); });
  }
  tell(finished);
}

std::int64_t QueueState::generation() {
  MutexLock lock(mutex_);
  return generation_;
}

void QueueState::drop() {
  Finished finished;
  {
    MutexLock lock(mutex_);
    empty(finished, cancelled);
  }
  tell(finished);
}

std::string QueueState::waits_in(const QueueClient& client) {
  MutexLock lock(mutex_);
  if (std::find(puts_.begin(), puts_.end(), &client) != puts_.end())
    return fmt::format("room in queue \"{}\"", name_);
  for (const Take& take : takes_)
    if (take.client == &client)
      return fmt::format("{} elements of queue \"{}\", which has {}", take.count, name_,
                         elements_.size() + take.client->elements.size());
  return "";
}

void QueueState::empty(Finished& finished, const std::function<std::exception_ptr(const char* call)>& error) {
  for (QueueClient* client : puts_) finished.emplace_back(client, error("Enqueue"));
  for (const Take& take : takes_) finished.emplace_back(take.client, error("Dequeue"));
  puts_.clear();
  takes_.clear();
  elements_.clear();
  closed_ = false;
}

std::size_t QueueState::size() {
  MutexLock lock(mutex_);
  return elements_.size();
}

bool QueueState::is_closed() {
  MutexLock lock(mutex_);
  return closed_;
}

void QueueState::move_all(Finished& finished) {
  for (bool moved = true; moved;) {
    moved = move_in(finished);
    moved |= move_out(finished);
  }
}

// Elements of the first put, as far as there is room.
bool QueueState::move_in(Finished& finished) {
  if (puts_.empty()) return false;
  QueueClient& client = *puts_.front();
  bool moved = false;
  for (; !client.elements.empty() && has_room(); moved = true) {
    elements_.push_back(std::move(client.elements.front()));
    client.elements.pop_front();
  }
  if (!client.elements.empty()) return moved;
  puts_.pop_front();
  finished.emplace_back(&client, nullptr);
  return true;
}

// Elements for the first take that wants any, and for those before it that want none but greater ones.
bool QueueState::move_out(Finished& finished) {
  for (auto take = takes_.begin(); take != takes_.end(); ++take) {
    if (!take->than) return move_out(take, finished);
    if (move_newest_out(take, finished)) return true;
  }
  return false;
}

bool QueueState::move_newest_out(std::deque<Take>::iterator take, Finished& finished) {
  const auto number = [](const QueueElement& element) { return element.front().value<std::int64_t>(); };
  const auto newest = std::max_element(elements_.begin(), elements_.end(),
                                       [&](const auto& a, const auto& b) { return number(a) < number(b); });
  std::exception_ptr error;
  if (newest != elements_.end() && number(*newest) > *take->than) {
    const std::int64_t taken = number(*newest);
    take->client->elements.push_back(std::move(*newest));
    elements_.erase(newest);
    std::erase_if(elements_, [&](const QueueElement& element) { return number(element) < taken; });
  } else if (closed_ && puts_.empty()) {
    error = insufficient(1);
  } else {
    return false;
  }
  finished.emplace_back(take->client, error);
  takes_.erase(take);
  return true;
}

// As far as there are any. What is still to be put in will come, even if the queue is closed.
bool QueueState::move_out(std::deque<Take>::iterator first, Finished& finished) {
  const Take take = *first;
  auto& taken = take.client->elements;
  bool moved = false;
  for (; taken.size() < take.count && !elements_.empty(); moved = true) {
    taken.push_back(std::move(elements_.front()));
    elements_.pop_front();
  }
  const bool is_complete = taken.size() == take.count;
  if (!is_complete && (!closed_ || !puts_.empty())) return moved;
  std::exception_ptr error;
  if (!is_complete && (take.exactly || taken.empty())) {
    give_back(*take.client);
    error = insufficient(take.count);
  }
  takes_.erase(first);
  finished.emplace_back(take.client, error);
  return true;
}

std::exception_ptr QueueState::insufficient(std::size_t requested) const {
  return std::make_exception_ptr(OutOfRangeError(
      "FIFOQueue '{}' is closed and has insufficient elements (requested {}, current size {})", name_,
      requested, elements_.size()));
}

bool QueueState::has_room() const {
  return capacity_ < 0 || elements_.size() < static_cast<std::size_t>(capacity_);
}

void QueueState::give_back(QueueClient& client) {
  elements_.insert(elements_.begin(), std::make_move_iterator(client.elements.begin()),
                   std::make_move_iterator(client.elements.end()));
  client.elements.clear();
}

}  // namespace kolo::detail
