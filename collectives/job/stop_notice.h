// The notice that a host is about to go, or the job's time over: the rank that looks for it asks all to stop.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include <kolo/core/base/stop_time.h>

namespace kolo::detail {

/// Looks for a file, and runs a command, from time to time. When the file is there, or the command ends with
/// 0, it logs that this host goes, tells kolorun, and raises the request to stop of stop_signal.h; so it
/// does, telling nobody of a host, some time before the batch system ends the job. It has then done its work.
/// The thread is its own. One thread calls.
class StopNotice {
 public:
  struct Plan {
    std::string file = {};     // KOLO_STOP_FILE; "": none
    std::string command = {};  // KOLO_STOP_WHEN, for sh; "": none
    std::chrono::milliseconds file_every{1000}, command_every{5000};
    std::chrono::milliseconds command_limit{2000};  // killed after that, as one that has failed
    std::optional<double> stop_before_s = {};  // KOLO_STOP_BEFORE; nothing: the job's end is not asked for
    RunProgram run = ask_program;              // of the batch system, for that
  };

  /// What the environment asks for. Throws InvalidArgumentError for a KOLO_STOP_BEFORE that is no number;
  /// under kolorun, which has --stop-before, that is left alone.
  static Plan plan_of_environment();
  /// Nothing for an empty plan. follows_job: this rank is the one that looks for the job's end.
  static std::unique_ptr<StopNotice> of(Plan plan, bool follows_job);

  explicit StopNotice(Plan plan);
  ~StopNotice();
  StopNotice(const StopNotice&) = delete;
  StopNotice& operator=(const StopNotice&) = delete;

 private:
  void look();
  bool command_says_so();
  std::string notice_of_host();
  bool is_time_over();
  bool wait_ms(std::chrono::milliseconds time) const;

  const Plan plan_;
  std::chrono::steady_clock::time_point next_file_, next_command_;
  std::optional<StopTime> stop_time_;
  bool told_of_lost_code_ = false;
  int end_;  // an eventfd, readable once the thread is to end
  std::thread thread_;
};

}  // namespace kolo::detail
