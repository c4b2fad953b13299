#include <fmt/format.h>

#include <cmath>
#include <cstdio>

#include <kolo/core/base/launcher.h>
#include <kolo/models/keras/progress_internal.h>

namespace kolo::keras::detail {
namespace {

constexpr std::int64_t kWidth = 30;
constexpr double kRepaintSeconds = 0.05;

std::string values_text(const Logs& values) {
  std::string text;
  for (const auto& [name, value] : values.entries())
    text += fmt::format(" - {}: {}", name, value_text(value));
  return text;
}

}  // namespace

std::string bar_text(std::int64_t seen, std::int64_t target) {
  if (target < 0) return fmt::format("{:7d}/Unknown", seen);
  const std::string whole = std::to_string(target);
  const auto filled = target == 0 ? kWidth : kWidth * seen / target;
  std::string bar;
  if (filled > 0) bar = std::string(static_cast<std::size_t>(filled - 1), '=') + (seen < target ? ">" : "=");
  bar.resize(kWidth, '.');
  return fmt::format("{:>{}}/{} [{}]", seen, whole.size(), whole, bar);
}

std::string eta_text(double seconds) {
  const auto whole = static_cast<std::int64_t>(seconds);
  if (seconds > 3600) return fmt::format("{}:{:02}:{:02}", whole / 3600, whole % 3600 / 60, whole % 60);
  if (seconds > 60) return fmt::format("{}:{:02}", whole / 60, whole % 60);
  return fmt::format("{}s", whole);
}

std::string spent_text(double seconds, std::int64_t count, const char* unit) {
  const double each = count > 0 ? seconds / static_cast<double>(count) : 0;
  const std::string time = each >= 1      ? fmt::format("{:.0f}s", each)
                           : each >= 1e-3 ? fmt::format("{:.0f}ms", each * 1e3)
                                          : fmt::format("{:.0f}us", each * 1e6);
  return fmt::format("{:.0f}s {}/{}", seconds, time, unit);
}

std::string value_text(double value) {
  return std::abs(value) > 1e-3 ? fmt::format("{:.4f}", value) : fmt::format("{:.4e}", value);
}

ProgressLine::ProgressLine(std::int64_t target, int verbose, const char* unit)
    : target_(target), verbose_(verbose), unit_(unit), terminal_(kolo::detail::rewrites_lines()) {}

void ProgressLine::update(std::int64_t seen, const Logs& values) {
  const double now = seconds();
  if (verbose_ != 1 || !terminal_ || seen >= target_ || (painted_ >= 0 && now - painted_ < kRepaintSeconds))
    return;
  const double left = seen > 0 ? now / static_cast<double>(seen) * static_cast<double>(target_ - seen) : 0;
  paint(fmt::format("{} - ETA: {}{}", bar_text(seen, target_), eta_text(left), values_text(values)), false);
  painted_ = now;
}

void ProgressLine::finish(std::int64_t seen, const Logs& values) {
  if (verbose_ == 1)
    paint(fmt::format("{} - {}{}", bar_text(seen, target_), spent_text(seconds(), seen, unit_),
                      values_text(values)),
          true);
  if (verbose_ == 2) paint(fmt::format(" - {:.0f}s{}", seconds(), values_text(values)), true);
}

void ProgressLine::paint(const std::string& line, bool last) {
  const std::size_t width = line.size();
  const std::string rest(width < width_ && terminal_ ? width_ - width : 0, ' ');
  fmt::print("{}{}{}{}", terminal_ && verbose_ == 1 ? "\r" : "", line, rest, last ? "\n" : "");
  std::fflush(stdout);
  width_ = width;
}

}  // namespace kolo::keras::detail
