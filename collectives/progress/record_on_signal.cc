#include <kolo/collectives/progress/record_on_signal.h>

#include <kolo/core/base/log.h>
#include <kolo/core/base/stop_signal.h>

namespace kolo::detail {
namespace {

using namespace std::chrono_literals;

constexpr auto kPatience = 300ms;

}  // namespace

RecordOnSignal::RecordOnSignal(FlightRecorder& recorder) : recorder_(recorder) { install_record_signals(); }

RecordOnSignal::~RecordOnSignal() { remove_record_signals(); }

void RecordOnSignal::poll() {
  if (take_record_request()) {
    const std::string path = recorder_.write("SIGUSR2");
    if (!path.empty()) log_info("flight record: {}", path);
  }
  if (sigterm_received()) {
    if (recorder_.pending() > 0) recorder_.write("SIGTERM");
    end_by_sigterm();
  }
  if (stop_signal_received()) watch_the_stop();
  else stop_ = Stop::none;
}

void RecordOnSignal::watch_the_stop() {
  const auto now = Clock::now();
  if (stop_ == Stop::none) {
    stop_ = Stop::watched;
    stop_seen_ = now;
    ended_ = recorder_.ended();
  }
  if (stop_ == Stop::settled || now - stop_seen_ < kPatience) return;
  if (recorder_.pending() > 0 && recorder_.ended() == ended_) recorder_.write("asked to stop");
  stop_ = Stop::settled;
}

}  // namespace kolo::detail
