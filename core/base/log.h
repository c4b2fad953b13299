// Log lines on stderr, each with `[rank/size host]` before it once init() has found the ranks.
// Level: KOLO_LOG_LEVEL.
#pragma once

#include <fmt/core.h>

#include <string>
#include <string_view>
#include <utility>

namespace kolo {

enum class LogLevel { debug, info, warning, error, off };

/// Lines below `level` are dropped. Default: info. Any thread.
void set_log_level(LogLevel level);
/// Written before each line, "" for none. Any thread.
void set_log_prefix(std::string prefix);
/// One whole line, never mixed with another thread's. Any thread.
void log(LogLevel level, std::string_view line);

/// A line of that level: fmt's text with its arguments. Any thread.
template <typename... Args>
void log_debug(fmt::format_string<Args...> text, Args&&... args) {
  log(LogLevel::debug, fmt::format(text, std::forward<Args>(args)...));
}
template <typename... Args>
void log_info(fmt::format_string<Args...> text, Args&&... args) {
  log(LogLevel::info, fmt::format(text, std::forward<Args>(args)...));
}
template <typename... Args>
void log_warning(fmt::format_string<Args...> text, Args&&... args) {
  log(LogLevel::warning, fmt::format(text, std::forward<Args>(args)...));
}
template <typename... Args>
void log_error(fmt::format_string<Args...> text, Args&&... args) {
  log(LogLevel::error, fmt::format(text, std::forward<Args>(args)...));
}

}  // namespace kolo
