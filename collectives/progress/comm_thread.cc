// What holds between the communication thread and the others:
//
// 1. The fields above mutex_ belong to the communication thread alone. Other threads reach it through new_,
//    calls_ and woken_, which take_new() empties.
// 2. Only the front operation of a channel is started. A channel's operations end in the order of their
//    tickets, and `done` is called once for each: by finish(), or by enqueue() where it is refused.
// 3. One thread at a time advances an operation: this one, or the caller that started it, until that says
//    ended_here() or submits it. Meanwhile nothing else of the channel is pending here.
// 4. An error is final. It is kept, and the flight record written, before anybody is told of it: who hears of
//    it may end the process. From then on enqueue() refuses what comes on its channels.
// 5. Messages of an operation that was given up half-way may still arrive. The operation, whose memory they
//    go to, stays in abandoned_.
// 6. No wake-up is lost: rest() looks at new_, calls_ and woken_ under mutex_ before it sleeps, and whoever
//    writes them does so under mutex_. MPI wakes nobody, so each sleep has an end.
#include <kolo/collectives/progress/comm_thread.h>

#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>

#include <fmt/format.h>

#include <algorithm>
#include <future>
#include <limits>
#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/core/base/log.h>
#include <kolo/core/base/looks.h>
#include <kolo/core/base/text.h>

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
// While nothing but time has to pass.
constexpr auto kRestNap = 100us;
// A caller that runs its operation itself has a core to itself, or shares it with other ranks, which then
// have to be let in: it waits for a few milliseconds.
constexpr int kCallerSpinPolls = 100000;
constexpr int kCrowdedSpinPolls = 50;
constexpr int kCrowdedYieldPolls = 500;
// Reading the clock takes about as long as the shortest operations: they do without.
constexpr int kPollsBeforeClock = 16;
// How often notes of other ranks are looked at.
constexpr auto kWatchInterval = 20ms;
constexpr auto kIdleInterval = 100ms;
// With a resident: its messages are passed on by ranks that have nothing to do themselves. Where nothing has
// come for long, as in training, whose reductions do without them, it is looked after less often: on a
// virtual machine a nap costs 30 µs of the computing thread beside it.
constexpr auto kResidentInterval = 5ms, kQuietResidentInterval = 20ms;
constexpr auto kQuietAfter = 1s;
// Channels that one process set may open in the life of a job: their numbers lie in blocks.
constexpr int kChannelsOfSet = 1 << 16;

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
  std::exception_ptr error;
  std::promise<void> promise;
  auto done = promise.get_future();
  {
    MutexLock lock(mutex_);
    calls_.push_back([&] {
      try {
        work();
      } catch (...) {
        error = std::current_exception();
      }
      promise.set_value();  // outside of the handler: from here on the error is the caller's alone
    });
    wake_.notify_all();
  }
  done.wait();
  if (error) std::rethrow_exception(error);
}

int CommThread::open_channel(int process_set) {
  MutexLock lock(mutex_);
  const int in_set = opened_[process_set]++;
  if (in_set >= kChannelsOfSet || process_set >= std::numeric_limits<int>::max() / kChannelsOfSet)
    throw ResourceExhaustedError("process set {} cannot have channel {}", process_set, in_set);
  shared_numbers_.push_back(process_set * kChannelsOfSet + in_set);
  tickets_.push_back(0);
  ran_.push_back(-1);
  pending_.push_back(0);
  return static_cast<int>(tickets_.size()) - 1;
}

int CommThread::shared_number(int channel) {
  MutexLock lock(mutex_);
  return shared_numbers_.at(static_cast<std::size_t>(channel));
}

void CommThread::submit(Submission submission) {
  MutexLock lock(mutex_);
  record(submission);
  ++pending_.at(static_cast<std::size_t>(submission.channel));
  new_.push_back(std::move(submission));
  wake_.notify_all();
}

bool CommThread::may_run_here(int channel) {
  MutexLock lock(mutex_);
  return callers_run_ && pending_.at(static_cast<std::size_t>(channel)) == 0;
}

void CommThread::ended_here(const Submission& submission) {
  OperationDetails details = submission.details;
  details.name = submission.label;
  details.ticket = submission.ticket;
  const auto channel = static_cast<std::size_t>(submission.channel);
  MutexLock lock(mutex_);
  details.channel = shared_numbers_[channel];
  recorder_.ended_at_once(details,
                          submission.started ? Clock::now() - *submission.started : Clock::duration::zero());
  ran_[channel] = submission.ticket;
}

void CommThread::ended(int channel) {
  MutexLock lock(mutex_);
  --pending_[static_cast<std::size_t>(channel)];
}

void CommThread::wake() {
  MutexLock lock(mutex_);
  woken_ = true;
  wake_.notify_all();
}

void CommThread::record(Submission& submission) {
  OperationDetails details = submission.details;
  details.name = submission.label;
  details.channel = shared_numbers_.at(static_cast<std::size_t>(submission.channel));
  details.ticket = submission.ticket;
  submission.record = recorder_.submitted(details);
  submission.submitted = Clock::now();
}

void CommThread::run(int channel, std::shared_ptr<Collective> operation, const std::string& label) {
  Submission submission{channel, 0, std::move(operation), label, {}};
  bool here = !submission.operation->needs_comm_thread();
  {
    MutexLock lock(mutex_);
    submission.ticket = tickets_.at(channel)++;
    here = here && callers_run_;
  }
  if (here && run_here(*submission.operation, submission.started)) ended_here(submission);
  else run_on_thread(std::move(submission));
}

bool CommThread::run_here(Collective& operation, std::optional<Clock::time_point>& since) const {
  Looks looks = crowded_ ? Looks(kCrowdedSpinPolls, kCrowdedYieldPolls) : Looks(kCallerSpinPolls, 0);
  operation.start();
  for (int polls = 1;; ++polls) {
    if (polls == kPollsBeforeClock) since = Clock::now();
    const Progress progress = operation.progress();
    if (progress == Progress::finished) return true;
    if (progress == Progress::advanced) looks.begin_again();
    else if (!looks.go_on()) return false;
  }
}

void CommThread::run_on_thread(Submission submission) {
  std::promise<void> promise;
  auto done = promise.get_future();
  submission.done = [&promise](std::exception_ptr error) {
    if (error) promise.set_exception(error);
    else promise.set_value();
  };
  submit(std::move(submission));
  done.get();
}

void CommThread::refuse_callers() {
  MutexLock lock(mutex_);
  callers_run_ = false;
}

void CommThread::set_timeline(std::shared_ptr<Timeline> timeline) {
  MutexLock lock(mutex_);
  timeline_ = std::move(timeline);
  callers_run_ = timeline_ == nullptr && !closed_ && !error();
}

std::shared_ptr<Timeline> CommThread::take_timeline() {
  auto timeline = timeline_;
  set_timeline(nullptr);
  return timeline;
}

void CommThread::close() {
  call([this] {
    closed_ = true;
    refuse_callers();
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
    if (advanced) last_advance_ = now;
    idle_polls_ = advanced ? 0 : std::min(idle_polls_ + 1, 1 << 20);
    if (now - last_watch_ >= kWatchInterval) watch(now);
    bool runs = false;
    for (const auto& channel : channels_) runs = runs || !channel.queue.empty();
    const bool busy = runs || resident != Resident::State::idle;
    if (!advanced) rest(stop, now, busy, !runs && resident == Resident::State::resting);
  }
}

void CommThread::take_new() {
  {
    MutexLock lock(mutex_);
    taken_.swap(new_);
    taken_calls_.swap(calls_);
    if (std::exchange(woken_, false)) idle_polls_ = 0;
    while (channels_.size() < tickets_.size()) {
      const int number = shared_numbers_[channels_.size()];
      channels_.emplace_back().process_set = number / kChannelsOfSet;
      finished_.push_back({number, -1});
    }
    for (std::size_t channel = 0; channel < ran_.size(); ++channel)
      finished_[channel].ticket = std::max(finished_[channel].ticket, ran_[channel]);
  }
  if (!taken_.empty()) idle_polls_ = 0;
  for (auto& submission : taken_) enqueue(submission);
  taken_.clear();
  for (const auto& work : taken_calls_) work();
  taken_calls_.clear();
}

void CommThread::enqueue(Submission& submission) {
  Channel& channel = channels_[submission.channel];
  const auto refusal =
      closed_
          ? std::make_exception_ptr(AbortedError("kolo was shut down while {} was pending", submission.label))
      : error(channel.process_set) ? error(channel.process_set)
                                   : channel.error;
  if (!refusal) {
    channel.queue.push(std::move(submission));
    return;
  }
  if (submission.started) abandoned_.push_back(submission.operation);
  recorder_.finished(submission.record, true);
  ended(submission.channel);
  submission.done(refusal);
}

bool CommThread::advance() {
  bool advanced = moved_ = false;
  for (auto& channel : channels_) {
    try {
      while (!channel.queue.empty() && advance(channel)) advanced = true;
    } catch (...) {
      fail(channel.process_set, std::current_exception());
      advanced = true;
    }
  }
  return advanced || moved_;
}

// True when the channel may have more to do at once.
bool CommThread::advance(Channel& channel) {
  Submission& front = channel.queue.front();
  if (!channel.started) {
    channel.since = front.started.value_or(Clock::now());
    channel.started = true;
    recorder_.started(front.record);
    if (!front.started) front.operation->start();
  }
  const Progress progress = front.operation->progress();
  if (timeline_) draw_phase(channel);
  switch (progress) {
    case Progress::none: return false;
    case Progress::advanced: moved_ = true; return false;  // the other channels' turn
    case Progress::finished: finish(channel, nullptr); return true;
  }
  return false;
}

void CommThread::draw_phase(Channel& channel) {
  const char* const phase = channel.queue.front().operation->phase();
  if (phase == channel.phase) return;
  const auto now = Clock::now();
  if (channel.phase != nullptr)
    timeline_->add({.name = channel.queue.front().label,
                    .category = channel.phase,
                    .lane = fmt::format("channel {} phases", channel.queue.front().channel),
                    .start = channel.phase_since,
                    .end = now});
  channel.phase = phase;
  channel.phase_since = now;
}

void CommThread::draw(const Channel& channel, Clock::time_point now) {
  const Submission& front = channel.queue.front();
  const auto started = channel.started ? channel.since : now;
  timeline_->add({.name = front.label,
                  .category = "queue",
                  .lane = fmt::format("channel {} queue", front.channel),
                  .start = front.submitted,
                  .end = started});
  timeline_->add({.name = front.label,
                  .category = front.details.kind.empty() ? "exchange" : front.details.kind,
                  .lane = fmt::format("channel {}", front.channel),
                  .start = started,
                  .end = now,
                  .bytes = front.details.bytes});
}

void CommThread::finish(Channel& channel, std::exception_ptr error) {
  if (timeline_) draw(channel, Clock::now());
  channel.phase = nullptr;
  const Submission front = channel.queue.pop();
  if (error && channel.started && !front.operation->abort(error)) abandoned_.push_back(front.operation);
  channel.started = false;
  if (!error) finished_[front.channel].ticket = front.ticket;
  recorder_.finished(front.record, error != nullptr);
  ended(front.channel);
  front.done(error);
}

void CommThread::watch(Clock::time_point now) {
  last_watch_ = now;
  if (idle_work_) idle_work_();
  if (!watchdog_) return;
  waiting_.clear();
  waiting_channels_.clear();
  for (auto& channel : channels_) {
    if (channel.queue.empty() || !channel.started) continue;
    const auto& front = channel.queue.front();
    waiting_.push_back({finished_[front.channel].channel, front.ticket, front.label, channel.since});
    waiting_channels_.push_back(&channel);
  }
  try {
    watchdog_->poll(now, waiting_, finished_);
    // At once, though nothing may wait here: what this rank entered later would still find what the others
    // sent before they gave up, and end well on this rank alone.
    if (watchdog_->given_up()) {
      fail_all(watchdog_->given_up());
      return;
    }
    for (std::size_t i = 0; i < waiting_.size(); ++i)
      if (const auto error = watchdog_->verdict(waiting_[i].channel, waiting_[i].ticket))
        fail(*waiting_channels_[i], error);
  } catch (...) {
    fail_all(std::current_exception());
  }
}

// Channels of other ranks go on.
void CommThread::fail(Channel& channel, std::exception_ptr error) {
  record_failure(channel.process_set, error);
  channel.error = error;
  while (!channel.queue.empty()) finish(channel, error);
}

// Once, at the first sign: a rank that enters an operation after all have given it up was not in it. A
// program may go on without one of its sets: what later ends the job is recorded as well.
void CommThread::record_failure(int process_set, const std::exception_ptr& error) {
  if (recorded_failures_.count(0) > 0 || !recorded_failures_.insert(process_set).second) return;
  const std::string path = recorder_.write(message_of(error));
  if (!path.empty()) log_info("flight record: {}", path);
}

std::exception_ptr CommThread::error(int process_set) const {
  if (error_ || errors_.empty()) return error_;
  const auto found = errors_.find(process_set);
  return found == errors_.end() ? nullptr : found->second;
}

void CommThread::fail(int process_set, const std::exception_ptr& error) {
  if (this->error(process_set)) return;
  errors_[process_set] = error;
  if (process_set == 0) refuse_callers();  // those of the control channel, and of schedules
  // Before anybody is told: who hears of it may end the process.
  record_failure(process_set, error);
  for (auto& channel : channels_)
    while (channel.process_set == process_set && !channel.queue.empty()) finish(channel, error);
}

void CommThread::fail_all(std::exception_ptr error) {
  if (!error_) give_up(error);
  for (auto& channel : channels_)
    while (!channel.queue.empty()) finish(channel, error_);
}

// Before anybody is told: who hears of it may end the process.
void CommThread::give_up(const std::exception_ptr& error) {
  error_ = error;
  refuse_callers();
  record_failure(0, error);
  if (timeline_)  // what was under way is what it is looked at for
    for (const auto& channel : channels_)
      if (!channel.queue.empty()) draw(channel, Clock::now());
  if (last_words_) last_words_();
}

void CommThread::rest(const std::stop_token& stop, Clock::time_point now, bool busy, bool at_once) {
  if (busy && !at_once && idle_polls_ < kSpinPolls) return;
  if (busy && !at_once && idle_polls_ < kSpinPolls + kYieldPolls) {
    sched_yield();
    return;
  }
  const int doublings = std::min((idle_polls_ - kSpinPolls) / kPollsPerDoubling, 10);
  const auto nap = at_once
                       ? Clock::duration(kRestNap)
                       : std::min<Clock::duration>(kShortestNap * (1 << std::max(doublings, 0)), kLongestNap);
  const Clock::duration of_resident =
      now - last_advance_ > kQuietAfter ? kQuietResidentInterval : kResidentInterval;
  const Clock::duration idle = resident_ != nullptr ? of_resident : kIdleInterval;
  MutexLock lock(mutex_);
  if (!new_.empty() || !calls_.empty() || woken_ || stop.stop_requested()) return;
  wake_.wait_until(mutex_, now + (busy ? nap : idle));
}

}  // namespace kolo
