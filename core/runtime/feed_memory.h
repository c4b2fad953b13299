// Where values that are fed to a session lie best, and how they get there while earlier steps run.
#pragma once

#include <memory>
#include <vector>

#include <kolo/core/device/device.h>
#include <kolo/core/runtime/session.h>
#include <kolo/core/tensor/allocator.h>
#include <kolo/core/tensor/tensor.h>

namespace kolo {

/// Memory of the host from which the session's GPU copies while the host goes on; cpu_allocator() without a
/// GPU, and for a session on a server. It outlives the session. Any thread.
Allocator& feed_memory(Session& session);

/// Puts values on a session's GPU before the steps that are fed with them, so that no step waits for the way
/// there. One thread at a time; other threads run steps meanwhile. The destructor waits for its copies, but
/// for those of a GPU that no longer answers, whose memory is then kept for good.
class FeedSender {
 public:
  /// It may outlive the session. Where that has no GPU, or several, or is on a server, values stay where they
  /// are: nobody knows which of several will read them.
  explicit FeedSender(Session& session);
  ~FeedSender();
  FeedSender(const FeedSender&) = delete;
  FeedSender& operator=(const FeedSender&) = delete;

  /// Whether it has anything to do for that session.
  bool is_needed() const { return gpu_ != nullptr || memory_ != &cpu_allocator(); }
  /// Where values to be sent are written best; it outlives this.
  Allocator& memory() const { return *memory_; }
  /// The same value on the GPU, to be fed to that session: steps come behind the copy by themselves. Its
  /// memory is written again once nobody else holds the tensor. `value`, which is held until it is copied,
  /// must not be written before: its buffer is shared so long; settle() looks. Where the GPU has no room,
  /// `value` itself, and so from then on, which one warning says.
  /// Throws the error of a GPU that has failed.
  Tensor sent(const Tensor& value);
  /// Lets go of the values that have been copied by now. Throws the error of a GPU that has failed.
  void settle();

 private:
  struct Sent;
  std::shared_ptr<Sent> place_for(const Tensor& value);
  void put(const std::shared_ptr<Sent>& place);
  void note_again(const std::shared_ptr<Sent>& place);
  bool try_settle(Sent& sent) const;

  std::shared_ptr<Device> gpu_, host_;  // nullptr: values stay where they are
  Allocator* memory_;
  bool has_room_ = true;
  std::vector<std::shared_ptr<Sent>> sent_;  // also those whose memory is free
};

}  // namespace kolo
