// The notice that a host is about to go: its rank that looks for it asks all ranks to stop.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <thread>

namespace kolo::detail {

/// Looks for a file, and runs a command, from time to time. When the file is there, or the command ends with
/// 0, it logs that this host goes, tells kolorun, and raises the request to stop of stop_signal.h; it has
/// then done its work. The thread is its own. One thread calls.
class StopNotice {
 public:
  struct Plan {
    std::string file = {};     // KOLO_STOP_FILE; "": none
    std::string command = {};  // KOLO_STOP_WHEN, for sh; "": none
    std::chrono::milliseconds file_every{1000}, command_every{5000};
    std::chrono::milliseconds command_limit{2000};  // killed after that, as one that has failed
  };

  /// What the environment asks for; nullptr for nothing.
  static std::unique_ptr<StopNotice> from_environment();

  explicit StopNotice(Plan plan);
  ~StopNotice();
  StopNotice(const StopNotice&) = delete;
  StopNotice& operator=(const StopNotice&) = delete;

 private:
  void look();
  bool command_says_so();
  bool wait_ms(std::chrono::milliseconds time) const;

  const Plan plan_;
  int end_;  // an eventfd, readable once the thread is to end
  std::thread thread_;
};

}  // namespace kolo::detail
