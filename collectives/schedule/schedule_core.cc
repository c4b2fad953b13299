// What holds between the threads that submit slots:
//
// 1. Slots are sent in the order in which StepSlots gives them their turn: order_mutex_ is held from there
//    until they are sent.
// 2. At most one operation is in this side's hands (front_). Until that is over and told, or is passed on
//    with all that stands behind it, nothing of the channel reaches the communication thread.
// 3. Only the step's own thread starts one here, and only one that merely looks whether the other ranks have
//    come. Any other thread that finds one waiting passes it on.
// 4. Nobody is told under order_mutex_, since whoever is told may submit again.
#include <kolo/collectives/schedule/schedule_core.h>

#include <chrono>
#include <utility>

namespace kolo::detail {

// A channel and a communicator of its own.
void ScheduleCore::connect() {
  channel = runtime->thread().open_channel(set.id());
  const int shared = runtime->thread().shared_number(channel);
  runtime->thread().call([&] {
    if (members.empty()) {
      communicator = runtime->world().duplicate();
    } else {
      runtime->thread().watchdog()->set_members(shared, members);
      communicator = runtime->world().subset(members, set.id());
    }
  });
}

void ScheduleCore::add_slots(int count) {
  num_slots_ += count;
  slots->set_number(num_slots_);
  MutexLock lock(order_mutex_);
  to_read_.resize(static_cast<std::size_t>(num_slots_));
}

void ScheduleCore::begin() {
  MutexLock lock(order_mutex_);
  caller_ = std::this_thread::get_id();
}

void ScheduleCore::submit(int slot, Done done, bool to_read) {
  std::exception_ptr error;
  submit_all([&]() KOLO_REQUIRES(order_mutex_) {
    auto submitted = slots->submit(slot, done);
    error = submitted.error;
    if (!error) to_read_[slot] = to_read;
    return submitted;
  });
  if (error) done(error);
}

void ScheduleCore::submit_missing() {
  submit_all([&]() KOLO_REQUIRES(order_mutex_) {
    auto submitted = slots->submit_missing();
    for (int slot = submitted.first; slot < submitted.end; ++slot) to_read_[slot] = false;
    return submitted;
  });
}

// Two threads that have completed neighbouring buckets must not overtake each other here.
template <typename Submit>
void ScheduleCore::submit_all(const Submit& submit) {
  StepSlots::Submitted submitted;
  int over = kNone;
  {
    MutexLock lock(order_mutex_);
    submitted = submit();
    if (has_peers() && submitted.first < submitted.end) {
      if (next_ == end_) next_ = submitted.first;
      end_ = submitted.end;
      // The caller may be at work for long, and what stands behind its own would wait for that.
      if (front_ == Front::waiting && caller_ != std::this_thread::get_id()) pass_on();
      over = send_some();
    }
  }
  if (!has_peers()) return reduce_alone(submitted);
  tell(over);
  advance();
}

// Behind the step's last bucket, and before the next step's first.
void ScheduleCore::end_reading() {
  if (step_end == nullptr || !slots->take_read_through()) return;
  step_end->close();
  int over = kNone;
  {
    MutexLock lock(order_mutex_);
    next_ = num_slots_;
    end_ = next_ + 1;
    over = send_some();
  }
  tell(over);
}

// Until one waits for other ranks, or is over: that is returned.
int ScheduleCore::send_some() {
  while (front_ == Front::none && next_ < end_)
    if (const int slot = next_++; send(slot)) return slot;
  return kNone;
}

// True: it is over, and nobody has been told.
bool ScheduleCore::send(int slot) {
  Submission submission = submission_of(slot);
  if (!may_start_here(slot)) {
    runtime->thread().submit(std::move(submission));
    return false;
  }
  submission.started = std::chrono::steady_clock::now();
  front_ = Front::waiting;
  waiting_ = std::move(submission);
  waiting_slot_ = slot;
  is_started_ = is_said_ = false;
  return advance_waiting() == Progress::finished;
}

Submission ScheduleCore::submission_of(int slot) {
  Submission submission;
  submission.channel = channel;
  submission.ticket = slots->ticket(slot);
  if (slot == num_slots_) {
    submission.operation = step_end;
    submission.label = "the end of a training step, behind which gradients are written again";
    submission.done = [end = step_end.get()](std::exception_ptr error) { end->finish(error); };
    submission.details.kind = "barrier";
  } else {
    const auto& work = works[slot];
    work->ask_to_read(to_read_[slot]);
    submission.operation = work;
    submission.label = work->label();
    // The work, which holds the slots, lives as long as the submission.
    submission.done = [slots = slots.get(), slot](std::exception_ptr error) {
      slots->finish_slot(slot, error);
    };
    submission.details = work->details();
  }
  submission.details.process_set = set.id();
  return submission;
}

// Where it is only to be looked whether the others are there, and nothing to be computed.
bool ScheduleCore::may_start_here(int slot) const {
  const bool only_looks = slot == num_slots_ ? !step_end->needs_comm_thread()
                                             : to_read_[slot] && !works[slot]->needs_comm_thread();
  return only_looks && caller_ == std::this_thread::get_id() && runtime->thread().may_run_here(channel);
}

Progress ScheduleCore::look() {
  if (!std::exchange(is_started_, true)) waiting_.operation->start();
  const Progress progress = waiting_.operation->progress();
  // What this rank says goes out first.
  const bool only_said = progress == Progress::advanced && !std::exchange(is_said_, true);
  return only_said ? waiting_.operation->progress() : progress;
}

Progress ScheduleCore::advance_waiting() {
  Progress progress = Progress::finished;
  try {
    progress = look();
    if (progress == Progress::finished) runtime->thread().ended_here(waiting_);
  } catch (...) {
    waiting_error_ = std::current_exception();
  }
  if (progress == Progress::finished) front_ = Front::over;
  else if (progress == Progress::advanced) pass_on();  // it came to something else: there is work to do
  return progress;
}

// What the caller has in hand is another thread's from now on, and what stands behind it as well.
void ScheduleCore::pass_on() {
  front_ = Front::none;
  runtime->thread().submit(std::move(waiting_));
  while (next_ < end_) runtime->thread().submit(submission_of(next_++));
}

// Whoever is told may submit again.
void ScheduleCore::tell(int over) {
  while (over != kNone) {
    std::exception_ptr error;
    {
      MutexLock lock(order_mutex_);
      error = std::exchange(waiting_error_, nullptr);
    }
    if (over == num_slots_) step_end->finish(error);
    else slots->finish_slot(over, error);
    MutexLock lock(order_mutex_);
    front_ = Front::none;
    over = send_some();
  }
}

StepVote::Waits ScheduleCore::advance() {
  int over = kNone;
  {
    MutexLock lock(order_mutex_);
    if (front_ != Front::waiting || caller_ != std::this_thread::get_id()) return Waits::for_nothing_here;
    const Progress progress = advance_waiting();
    if (progress == Progress::none) return Waits::still;
    if (progress == Progress::finished) over = waiting_slot_;
  }
  tell(over);
  return Waits::no_more;
}

void ScheduleCore::hand_over() {
  MutexLock lock(order_mutex_);
  if (front_ == Front::waiting) pass_on();
}

void ScheduleCore::reduce_alone(const StepSlots::Submitted& buckets) {
  for (int bucket = buckets.first; bucket < buckets.end; ++bucket) {
    StepFlags flags;
    if (slots->begin_slot(bucket, flags)) {
      slots->received(bucket, flags);
      const std::string reason = slots->own_reason();
      if (flags.voids_step()) slots->set_reasons({&reason, 1});
    }
    slots->finish_slot(bucket, nullptr);
  }
}

}  // namespace kolo::detail
