// Whether a process that this one has not started itself ends.
#pragma once

#include <poll.h>
#include <sys/types.h>

#include <chrono>
#include <string>

#include <kolo/launcher/child.h>

namespace kolo::launcher {

/// True when the process has ended, also where nobody has waited for it yet; false after ten seconds.
inline bool ends_soon(pid_t pid) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  const auto is_over = [&] {
    const std::string stat = contents_of("/proc/" + std::to_string(pid) + "/stat");
    return stat.empty() || stat.find(") Z ") != std::string::npos;
  };
  while (!is_over() && std::chrono::steady_clock::now() < deadline) poll(nullptr, 0, 10);
  return is_over();
}

}  // namespace kolo::launcher
