// How a session runs steps; shared by the session and its callables.
#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <stop_token>
#include <vector>

#include <kolo/core/base/mutex.h>
#include <kolo/core/runtime/executor.h>
#include <kolo/core/runtime/pools.h>
#include <kolo/core/runtime/session.h>
#include <kolo/core/runtime/session_state.h>
#include <kolo/core/runtime/step_request.h>

namespace kolo {

/// Any thread.
class Session::Impl {
 public:
  Impl(Graph& graph, SessionConfig config);
  ~Impl();

  detail::SessionState& state() { return state_; }
  const detail::SessionPools& pools() const { return pools_; }

  /// A run under way: known to close(), which cancels it. From its making on the run's time counts.
  class Run {
   public:
    /// Throws as Session::run does on a closed session, and for options that cannot be.
    Run(Impl& session, const RunOptions& options);
    ~Run();
    Run(const Run&) = delete;
    Run& operator=(const Run&) = delete;

    /// Runs a step in a frame of the plan. `feed(i)`: the tensor for the signature's feed `i`; `take(frame)`
    /// is called after a step that succeeded, while the frame is still this run's.
    template <typename FeedAt, typename Take>
    void step(Plan& plan, const FeedAt& feed, const Take& take, RunMetadata* metadata) {
      // Before the frame, since buckets are memory that all frames of a schedule share.
      const detail::VotedStep voted(session_.training_step_, plan.votes());
      std::optional<FrameOf> frame;
      voted.prepare([&] {
        frame.emplace(plan);
        plan.bind_feeds(**frame, feed);
      });
      execute(plan, **frame, metadata);
      take(static_cast<const Frame&>(**frame));
    }

   private:
    friend class Impl;
    void execute(Plan& plan, Frame& frame, RunMetadata* metadata);

    Impl& session_;
    const RunOptions& options_;
    ThreadPool* pool_;
    std::optional<std::chrono::steady_clock::time_point> deadline_;
    StepCancellation cancellation_;
    struct Cancel {
      StepCancellation& cancellation;
      void operator()() const;
    };
    const std::stop_callback<Cancel> on_stop_;
    Run* next_ = nullptr;  // in the session's list
    Run* previous_ = nullptr;
  };

  /// The plan for a request; compiled if it is not there.
  std::shared_ptr<Plan> plan_for(const detail::StepRequest& request);

  void close() { close(false); }
  /// reset: runs, also later ones, end in CancelledError `Session has been closed.`
  void close(bool reset) KOLO_EXCLUDES(mutex_);

 private:
  // A frame of a plan, given back in whatever way the step ends.
  class FrameOf {
   public:
    explicit FrameOf(Plan& plan) : plan_(plan), frame_(plan.take_frame()) {}
    ~FrameOf() { plan_.give_back(std::move(frame_)); }
    FrameOf(const FrameOf&) = delete;
    FrameOf& operator=(const FrameOf&) = delete;
    Frame& operator*() const { return *frame_; }

   private:
    Plan& plan_;
    mutable std::unique_ptr<Frame> frame_;
  };

  const int intra_op_threads_;
  detail::SessionState state_;
  const detail::SessionPools pools_;
  detail::PlanCache plans_;
  Mutex training_step_;

  Mutex mutex_;
  CondVar idle_;
  bool closed_ KOLO_GUARDED_BY(mutex_) = false;
  bool reset_ KOLO_GUARDED_BY(mutex_) = false;
  Run* runs_ KOLO_GUARDED_BY(mutex_) = nullptr;  // under way
};

}  // namespace kolo
