// How a thread that waits for others looks itself whether they have come, before it sleeps or another thread
// looks.
#pragma once

#include <chrono>
#include <thread>

namespace kolo {

/// A moment for the core's other hardware thread.
inline void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// The pauses between looks: short ones at first, then offers of the core to other threads. Looks are counted
/// rather than timed, since a thread that had no core for a while has not waited. But on a busy machine each
/// offer may take milliseconds, so these end after 20 ms. One thread.
class Looks {
 public:
  Looks(int at_once, int offers) : at_once_(at_once), most_(at_once + offers) {}

  /// Between two looks. False: that was the last one.
  bool go_on() {
    if (++looks_ <= at_once_) return relax(), true;
    if (looks_ > most_) return false;
    const auto now = Clock::now();
    if (looks_ == at_once_ + 1) until_ = now + kLongestOffers;
    if (now >= until_) return false;
    std::this_thread::yield();
    return true;
  }
  void begin_again() { looks_ = 0; }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds kLongestOffers{20};

  const int at_once_, most_;
  int looks_ = 0;
  Clock::time_point until_;
};

}  // namespace kolo
