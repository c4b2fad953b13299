#include <kolo/launcher/stop_time.h>

#include <algorithm>
#include <ctime>
#include <utility>

#include <fmt/chrono.h>

namespace kolo::launcher {

std::optional<WallTime> time_to_stop(WallTime start, WallTime end, std::optional<double> before_s) {
  constexpr double kUsual_s = 60, kMostOfWhatIsLeft = 0.1;
  const double left = std::chrono::duration<double>(end - start).count();
  const double before = before_s.value_or(std::clamp(left * kMostOfWhatIsLeft, 0.0, kUsual_s));
  if (before_s && *before_s == 0) return std::nullopt;
  return end - std::chrono::milliseconds(static_cast<std::int64_t>(before * 1000));
}

StopTime::StopTime(const Options& options, Environment environment, Ask ask)
    : options_(options),
      environment_(std::move(environment)),
      ask_(std::move(ask)),
      start_(std::chrono::system_clock::now()) {
  if (!options.allotment || (options.stop_before_s && *options.stop_before_s == 0)) return;
  end_ = find_end(*options.allotment, environment_, ask_);
  if (end_) when_ = time_to_stop(start_, *end_, options.stop_before_s);
}

std::optional<WallTime> StopTime::confirm() {
  const auto end = find_end(*options_.allotment, environment_, ask_);
  const bool moved = end && *end > *end_;
  if (!moved) return when_.reset(), end_;  // asked once; also where nobody answers
  end_ = end;
  when_ = time_to_stop(start_, *end_, options_.stop_before_s);
  return std::nullopt;
}

std::string clock_text(WallTime time) {
  return fmt::format("{:%H:%M:%S}", fmt::localtime(std::chrono::system_clock::to_time_t(time)));
}

std::string date_text(WallTime time) {
  return fmt::format("{:%Y-%m-%d %H:%M:%S}", fmt::localtime(std::chrono::system_clock::to_time_t(time)));
}

}  // namespace kolo::launcher
