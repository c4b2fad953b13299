// What the files of MasterSession share.
#pragma once

#include <kolo/core/base/error.h>
#include <kolo/core/cluster/master/master_session.h>
#include <kolo/core/cluster/waits.h>

namespace kolo::detail {

/// A call of the session under way: close() ends what it waits for, and waits for it.
class MasterSession::Use {
 public:
  explicit Use(MasterSession& session, const Deadline& deadline = {})
      : session_(session),
        stop_(deadline.stop(), session.closing_.get_token()),
        deadline_(deadline.with(stop_.token())) {
    MutexLock lock(session_.mutex_);
    if (session_.closed_) throw FailedPreconditionError("Session is closed.");
    ++session_.calls_;
  }
  ~Use() {
    MutexLock lock(session_.mutex_);
    session_.last_sign_ = Clock::now();
    if (--session_.calls_ == 0) session_.idle_.notify_all();
  }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;

  /// That of the call, and the session's end.
  const Deadline& deadline() const { return deadline_; }

 private:
  MasterSession& session_;
  const EitherStop stop_;
  const Deadline deadline_;
};

}  // namespace kolo::detail
