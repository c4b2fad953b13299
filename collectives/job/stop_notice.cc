#include <kolo/collectives/job/stop_notice.h>

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <kolo/core/base/batch_job.h>
#include <kolo/core/base/child_program.h>
#include <kolo/core/base/env.h>
#include <kolo/core/base/error.h>
#include <kolo/core/base/launcher.h>
#include <kolo/core/base/log.h>
#include <kolo/core/base/process.h>
#include <kolo/core/base/stop_signal.h>

namespace kolo::detail {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kBetweenLooks{20};  // at a command that runs
constexpr std::chrono::hours kLongestWait{1};
constexpr std::chrono::seconds kBetweenSaves{1};  // between looks at how long the last save took
constexpr double kLongest_s = 1e9;

}  // namespace

StopNotice::Plan StopNotice::plan_of_environment() {
  Plan plan;
  plan.file = env_string("KOLO_STOP_FILE").value_or("");
  plan.command = env_string("KOLO_STOP_WHEN").value_or("");
  if (env_string("KOLO_STOP_BEFORE") && !is_under_kolorun())
    plan.stop_before_s = env_double("KOLO_STOP_BEFORE", 0, 0, kLongest_s);
  return plan;
}

std::unique_ptr<StopNotice> StopNotice::of(Plan plan, bool follows_job) {
  if (!follows_job || plan.stop_before_s == 0) plan.stop_before_s.reset();
  if (plan.file.empty() && plan.command.empty() && !plan.stop_before_s) return nullptr;
  return std::make_unique<StopNotice>(std::move(plan));
}

StopNotice::StopNotice(Plan plan) : plan_(std::move(plan)), end_(eventfd(0, EFD_CLOEXEC)) {
  if (end_ < 0) throw ResourceExhaustedError("cannot make an eventfd: {}", std::strerror(errno));
  thread_ = std::thread([this] {
    pthread_setname_np(pthread_self(), "kolo notice");
    block_stop_signals();
    look();
  });
}

StopNotice::~StopNotice() {
  eventfd_write(end_, 1);
  thread_.join();
  ::close(end_);
}

// False if the thread is to end.
bool StopNotice::wait_ms(milliseconds time) const {
  pollfd end = {end_, POLLIN, 0};
  return poll(&end, 1, static_cast<int>(time.count())) <= 0;
}

bool StopNotice::command_says_so() {
  const pid_t pid = spawn_program({"sh", "-c", plan_.command});
  if (pid < 0) return false;
  const auto deadline = Clock::now() + plan_.command_limit;
  std::optional<int> code;
  while (!(code = code_of_child(pid))) {
    if (Clock::now() < deadline && wait_ms(kBetweenLooks)) continue;
    kill(-pid, SIGKILL);
    code_of_child(pid, true);
    return false;
  }
  if (code == kLostCode && !std::exchange(told_of_lost_code_, true))
    log_warning("KOLO_STOP_WHEN \"{}\": {}; no end of it stops the job", plan_.command, kCodeIsLost);
  return code == 0;
}

// What says that this host goes; "" for nothing.
std::string StopNotice::notice_of_host() {
  const auto now = Clock::now();
  if (!plan_.file.empty() && now >= next_file_) {
    next_file_ = now + plan_.file_every;
    if (access(plan_.file.c_str(), F_OK) == 0) return plan_.file + " is there";
  }
  if (plan_.command.empty() || now < next_command_) return "";
  next_command_ = now + plan_.command_every;
  return command_says_so() ? "\"" + plan_.command + "\" ends with 0" : "";
}

bool StopNotice::is_time_over() {
  if (!stop_time_) return false;
  const auto now = std::chrono::system_clock::now();
  stop_time_->look_again(now);
  stop_time_->save_took(last_save());
  if (!stop_time_->when() || now < *stop_time_->when()) return false;
  const auto end = stop_time_->confirm();
  if (end)
    log_warning("the job's time ends at {}; asking all ranks to stop{}", clock_text(*end),
                stop_time_->reason());
  return end.has_value();
}

void StopNotice::look() {
  next_file_ = next_command_ = Clock::now();
  if (plan_.stop_before_s) stop_time_.emplace(find_batch_job(), plan_.stop_before_s, own_variable, plan_.run);
  for (;;) {
    const std::string notice = notice_of_host();
    if (!notice.empty()) {
      log_warning("this host is about to go: {}; asking all ranks to stop", notice);
      tell_host_goes(process().hostname);
    }
    if (!notice.empty() || is_time_over()) return request_stop();
    auto next = Clock::now() + kLongestWait;
    if (!plan_.file.empty()) next = std::min(next, next_file_);
    if (!plan_.command.empty()) next = std::min(next, next_command_);
    if (stop_time_ && stop_time_->when()) next = std::min(next, Clock::now() + kBetweenSaves);
    if (stop_time_ && stop_time_->next())
      next = std::min(next, Clock::now() + (*stop_time_->next() - std::chrono::system_clock::now()));
    if (!wait_ms(std::max(milliseconds(1), std::chrono::ceil<milliseconds>(next - Clock::now())))) return;
  }
}

}  // namespace kolo::detail
