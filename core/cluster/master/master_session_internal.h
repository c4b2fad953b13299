// What the files of MasterSession share.
#pragma once

#include <algorithm>
#include <chrono>

#include <kolo/core/base/error.h>
#include <kolo/core/cluster/master/master_session.h>

namespace kolo::detail {

/// A call of the session under way: close() waits for it.
class MasterSession::Use {
 public:
  explicit Use(MasterSession& session) : session_(session) {
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

 private:
  MasterSession& session_;
};

inline Deadline at_most(Deadline deadline, std::chrono::seconds patience) {
  const auto limit = std::chrono::steady_clock::now() + patience;
  return deadline ? std::min(*deadline, limit) : limit;
}

}  // namespace kolo::detail
