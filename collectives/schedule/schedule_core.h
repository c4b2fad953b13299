// What a schedule is made of once the ranks have compared it, and the way of its slots to the communication
// thread or past it.
#pragma once

#include <memory>
#include <thread>
#include <vector>

#include <kolo/collectives/algorithms/device_collectives.h>
#include <kolo/collectives/engine/engine.h>
#include <kolo/collectives/job/runtime.h>
#include <kolo/collectives/schedule/factors_work.h>
#include <kolo/collectives/schedule/slot_work.h>
#include <kolo/collectives/schedule/spec.h>
#include <kolo/collectives/schedule/step_end.h>
#include <kolo/collectives/schedule/step_slots.h>
#include <kolo/core/base/mutex.h>
#include <kolo/core/kernels/cpu/in_place_updates.h>
#include <kolo/core/runtime/step_vote.h>

namespace kolo::detail {

// Of n ranks each reads n times the gradients where it could read and write them once, wait for all, and read
// the sums: reading is cheaper than writing, up to three.
inline constexpr int kMostReaders = 3;
static_assert(kMostReaders <= kMaxGradients);

/// The communicator of a schedule, the works of its turns, and the way of these to the communication thread.
class ScheduleCore {
 public:
  using Done = SlotDone;
  using Waits = StepVote::Waits;

  ScheduleCore(std::shared_ptr<Runtime> runtime, int num_slots, const ProcessSet& set)
      : runtime(std::move(runtime)),
        set(set),
        members(set == ProcessSet() ? std::vector<int>() : current_engine()->set(set.id())->members()),
        slots(std::make_shared<StepSlots>(num_slots, members)),
        to_read_(static_cast<std::size_t>(num_slots)),
        num_slots_(num_slots) {}

  int num_slots() const { return num_slots_; }
  /// Before the first step: so many more.
  void add_slots(int count);
  bool has_peers() const { return runtime && runtime->has_peers() && members.size() != 1; }
  void connect();
  /// The thread that computes the step, which looks after what is left to it.
  void begin();
  /// to_read: a bucket is to be left as it is where all ranks ask for that, so that the caller may look
  /// itself whether they have come.
  void submit(int slot, Done done, bool to_read);
  void submit_missing();
  void end_reading();
  Waits advance();
  void hand_over();

  const std::shared_ptr<Runtime> runtime;  // nullptr without init()
  const ProcessSet set;
  const std::vector<int> members;  // of the set, in its order; none: all ranks
  const std::shared_ptr<StepSlots> slots;
  bool compared = false;
  int channel = 0;
  std::shared_ptr<Communicator> communicator;
  std::vector<std::shared_ptr<SlotWork>> works;  // by turn
  std::shared_ptr<StepEnd> step_end;             // where ranks may read each other's buckets
  std::shared_ptr<DeviceCollectives> gpus;       // where GPUs reduce the buckets

 private:
  static constexpr int kNone = -1;
  // What this side of the communication thread has in hand: an operation that the caller has started and that
  // waits for other ranks, or one that is over, while those are told who wait for it.
  enum class Front { none, waiting, over };

  template <typename Submit>
  void submit_all(const Submit& submit);
  int send_some() KOLO_REQUIRES(order_mutex_);
  bool send(int slot) KOLO_REQUIRES(order_mutex_);
  Submission submission_of(int slot) KOLO_REQUIRES(order_mutex_);
  bool may_start_here(int slot) const KOLO_REQUIRES(order_mutex_);
  Progress advance_waiting() KOLO_REQUIRES(order_mutex_);
  Progress look() KOLO_REQUIRES(order_mutex_);
  void pass_on() KOLO_REQUIRES(order_mutex_);
  void tell(int over) KOLO_EXCLUDES(order_mutex_);
  void reduce_alone(const StepSlots::Submitted& buckets);

  Mutex order_mutex_;
  // Slots whose turn it is and that are not sent; the one behind the last is the step's end.
  int next_ KOLO_GUARDED_BY(order_mutex_) = 0, end_ KOLO_GUARDED_BY(order_mutex_) = 0;
  std::vector<bool> to_read_ KOLO_GUARDED_BY(order_mutex_);  // by slot
  std::thread::id caller_ KOLO_GUARDED_BY(order_mutex_);
  Front front_ KOLO_GUARDED_BY(order_mutex_) = Front::none;
  Submission waiting_ KOLO_GUARDED_BY(order_mutex_);  // its slot; where one is over, of that
  int waiting_slot_ KOLO_GUARDED_BY(order_mutex_) = kNone;
  bool is_started_ KOLO_GUARDED_BY(order_mutex_) = false;
  bool is_said_ KOLO_GUARDED_BY(order_mutex_) = false;              // by this rank, in it
  std::exception_ptr waiting_error_ KOLO_GUARDED_BY(order_mutex_);  // of the one that is over
  int num_slots_;
};

}  // namespace kolo::detail
