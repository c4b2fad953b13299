#include <kolo/core/base/log.h>

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <memory>

#include <kolo/core/base/launcher.h>

namespace kolo {
namespace {

spdlog::level::level_enum spdlog_level(LogLevel level) {
  switch (level) {
    case LogLevel::debug: return spdlog::level::debug;
    case LogLevel::info: return spdlog::level::info;
    case LogLevel::warning: return spdlog::level::warn;
    case LogLevel::error: return spdlog::level::err;
    case LogLevel::off: return spdlog::level::off;
  }
  return spdlog::level::info;
}

// On the user's own terminal a progress line may stand where this one begins: what is left of it is cleared.
std::string pattern(const std::string& prefix) {
  return (detail::is_own_terminal(STDERR_FILENO) ? "\033[K" : "") + prefix + "%L %Y-%m-%d %H:%M:%S.%e %v";
}

// Never destroyed: destructors of other statics, and the exit handler, still log.
spdlog::logger& logger() {
  static auto* const instance = [] {
    auto* made = new spdlog::logger("kolo", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    made->set_pattern(pattern(""));
    made->flush_on(spdlog::level::trace);
    return made;
  }();
  return *instance;
}

}  // namespace

void set_log_level(LogLevel level) { logger().set_level(spdlog_level(level)); }

void set_log_prefix(std::string prefix) {
  std::string escaped;
  for (const char c : prefix) escaped += c == '%' ? std::string("%%") : std::string(1, c);
  if (!escaped.empty()) escaped += ' ';
  logger().set_pattern(pattern(escaped));
}

void log(LogLevel level, std::string_view line) { logger().log(spdlog_level(level), line); }

}  // namespace kolo
