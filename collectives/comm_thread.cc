#include <kolo/collectives/comm_thread.h>

#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>

#include <algorithm>
#include <future>
#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/core/base/log.h>

namespace kolo {
namespace {

using namespace std::chrono_literals;

// MPI has no call that sleeps until one of several requests moves, and a thread of ours that polls without
// pause takes the core from the rank's own computing (two ranks on two cores have none to spare). So: a short
// spin, as messages inside a node take a few µs; then the core is offered a few times to whoever wants it;
// then naps, from which the system wakes us before it goes on with a computing thread. They are short at
// first, as the next chunk may be on its way, and grow with the wait. A submission ends a nap. Polls are
// counted rather than timed: a thread that had no core for a while has not waited.
constexpr int kSpinPolls = 200;
constexpr int kYieldPolls = 10;
constexpr auto kShortestNap = 20us;
constexpr auto kLongestNap = 500us;
constexpr int kPollsPerDoubling = 50;
// How often notes of other ranks are looked at.
constexpr auto kWatchInterval = 20ms;
constexpr auto kIdleInterval = 100ms;
// With a resident: its messages are passed on by ranks that have nothing to do themselves.
constexpr auto kResidentInterval = 5ms;

void set_up_thread(std::optional<int> core) {
  pthread_setname_np(pthread_self(), "kolo-comm");
  prctl(PR_SET_TIMERSLACK, 1UL);  // naps of 50 µs would otherwise last twice as long
  if (!core) return;
  cpu_set_t cores;
  CPU_ZERO(&cores);
  CPU_SET(*core, &cores);
  if (pthread_setaffinity_np(pthread_self(), sizeof cores, &cores) != 0)
    log_warning("KOLO_COMM_THREAD_CORE: the communication thread cannot be bound to core {}", *core);
}

}  // namespace

void CommThread::Queue::push(Submission submission) {
  if (first_ > 64) {  // a queue that never runs empty
    submissions_.erase(submissions_.begin(), submissions_.begin() + static_cast<std::ptrdiff_t>(first_));
    first_ = 0;
  }
  submissions_.push_back(std::move(submission));
}

Submission CommThread::Queue::pop() {
  Submission front = std::move(submissions_[first_++]);
  if (empty()) {
    submissions_.clear();
    first_ = 0;
  }
  return front;
}

CommThread::CommThread(std::optional<int> core)
    : thread_([this, core](std::stop_token stop) {
        set_up_thread(core);
        loop(stop);
      }) {}

CommThread::~CommThread() {
  close();
  thread_.request_stop();
  {
    MutexLock lock(mutex_);
    wake_.notify_all();
  }
  thread_.join();
}

void CommThread::call(const std::function<void()>& work) {
  std::promise<void> promise;
  auto done = promise.get_future();
  {
    MutexLock lock(mutex_);
    calls_.push_back([&] {
      try {
        work();
        promise.set_value();
      } catch (...) {
        promise.set_exception(std::current_exception());
      }
    });
    wake_.notify_all();
  }
  done.get();
}

int CommThread::open_channel() {
  MutexLock lock(mutex_);
  tickets_.push_back(0);
  return static_cast<int>(tickets_.size()) - 1;
}

void CommThread::submit(Submission submission) {
  MutexLock lock(mutex_);
  new_.push_back(std::move(submission));
  wake_.notify_all();
}

void CommThread::wake() {
  MutexLock lock(mutex_);
  woken_ = true;
  wake_.notify_all();
}

void CommThread::run(int channel, std::shared_ptr<Collective> operation, const std::string& label) {
  std::promise<void> promise;
  auto done = promise.get_future();
  {
    MutexLock lock(mutex_);
    new_.push_back(
        {channel, tickets_.at(channel)++, std::move(operation), label, [&promise](std::exception_ptr error) {
           if (error) promise.set_exception(error);
           else promise.set_value();
         }});
    wake_.notify_all();
  }
  done.get();
}

void CommThread::close() {
  call([this] {
    closed_ = true;
    for (auto& channel : channels_)
      while (!channel.queue.empty())
        finish(channel, std::make_exception_ptr(AbortedError("kolo was shut down while {} was pending",
                                                             channel.queue.front().label)));
  });
}

void CommThread::loop(std::stop_token stop) {
  last_watch_ = Clock::now();
  while (!stop.stop_requested()) {
    take_new();
    bool advanced = advance();
    const auto now = Clock::now();
    const auto resident = resident_ != nullptr ? resident_->advance(now) : Resident::State::idle;
    advanced = advanced || resident == Resident::State::advanced;
    idle_polls_ = advanced ? 0 : std::min(idle_polls_ + 1, 1 << 20);
    if (now - last_watch_ >= kWatchInterval) watch(now);
    bool busy = resident != Resident::State::idle;
    for (const auto& channel : channels_) busy = busy || !channel.queue.empty();
    if (!advanced) rest(stop, now, busy);
  }
}

void CommThread::take_new() {
  {
    MutexLock lock(mutex_);
    taken_.swap(new_);
    taken_calls_.swap(calls_);
    if (std::exchange(woken_, false)) idle_polls_ = 0;
    if (channels_.size() < tickets_.size()) {
      channels_.resize(tickets_.size());
      finished_.resize(tickets_.size(), -1);
    }
  }
  if (!taken_.empty()) idle_polls_ = 0;
  for (auto& submission : taken_) enqueue(submission);
  taken_.clear();
  for (const auto& work : taken_calls_) work();
  taken_calls_.clear();
}

void CommThread::enqueue(Submission& submission) {
  if (closed_) {
    submission.done(
        std::make_exception_ptr(AbortedError("kolo was shut down while {} was pending", submission.label)));
  } else if (const auto error = error_ ? error_ : channels_[submission.channel].error) {
    submission.done(error);
  } else {
    channels_[submission.channel].queue.push(std::move(submission));
  }
}

bool CommThread::advance() {
  bool advanced = moved_ = false;
  for (auto& channel : channels_) {
    try {
      while (!channel.queue.empty() && advance(channel)) advanced = true;
    } catch (...) {
      fail_all(std::current_exception());
      return true;
    }
  }
  return advanced || moved_;
}

// True when the channel may have more to do at once.
bool CommThread::advance(Channel& channel) {
  Submission& front = channel.queue.front();
  if (!channel.started) {
    channel.since = Clock::now();
    channel.started = true;
    front.operation->start();
  }
  switch (front.operation->progress()) {
    case Progress::none: return false;
    case Progress::advanced: moved_ = true; return false;  // the other channels' turn
    case Progress::finished: finish(channel, nullptr); return true;
  }
  return false;
}

void CommThread::finish(Channel& channel, std::exception_ptr error) {
  const Submission front = channel.queue.pop();
  if (error && channel.started) abandoned_.push_back(front.operation);
  channel.started = false;
  if (!error) finished_[front.channel] = front.ticket;
  front.done(error);
}

void CommThread::watch(Clock::time_point now) {
  last_watch_ = now;
  if (!watchdog_) return;
  waiting_.clear();
  for (const auto& channel : channels_) {
    if (channel.queue.empty() || !channel.started) continue;
    const auto& front = channel.queue.front();
    waiting_.push_back({front.channel, front.ticket, front.label, channel.since});
  }
  try {
    watchdog_->poll(now, waiting_, finished_);
    for (const auto& operation : waiting_)
      if (const auto error = watchdog_->verdict(operation.channel, operation.ticket)) {
        if (watchdog_->has_given_up()) {
          fail_all(error);
          return;
        }
        fail(channels_[operation.channel], error);
      }
  } catch (...) {
    fail_all(std::current_exception());
  }
}

// Channels of other ranks go on.
void CommThread::fail(Channel& channel, std::exception_ptr error) {
  channel.error = error;
  while (!channel.queue.empty()) finish(channel, error);
}

void CommThread::fail_all(std::exception_ptr error) {
  if (!error_) error_ = error;
  for (auto& channel : channels_)
    while (!channel.queue.empty()) finish(channel, error_);
}

void CommThread::rest(const std::stop_token& stop, Clock::time_point now, bool busy) {
  if (busy && idle_polls_ < kSpinPolls) return;
  if (busy && idle_polls_ < kSpinPolls + kYieldPolls) {
    sched_yield();
    return;
  }
  const int doublings = std::min((idle_polls_ - kSpinPolls) / kPollsPerDoubling, 10);
  const auto nap = std::min<Clock::duration>(kShortestNap * (1 << std::max(doublings, 0)), kLongestNap);
  const Clock::duration idle = resident_ != nullptr ? Clock::duration(kResidentInterval) : kIdleInterval;
  MutexLock lock(mutex_);
  if (!new_.empty() || !calls_.empty() || woken_ || stop.stop_requested()) return;
  wake_.wait_until(mutex_, now + (busy ? nap : idle));
}

}  // namespace kolo
