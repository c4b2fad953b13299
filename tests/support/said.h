// What a test has captured of the standard error while it goes on.
#pragma once

#include <chrono>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <thread>

namespace kolo {

/// Whether a text stands in what CaptureStderr keeps, now or soon.
inline bool is_said(std::string_view text) {
  using std::chrono::steady_clock;
  for (const auto end = steady_clock::now() + std::chrono::seconds(30); steady_clock::now() < end;) {
    std::ifstream captured("/proc/self/fd/2");
    const std::string said{std::istreambuf_iterator<char>(captured), {}};
    if (said.find(text) != std::string::npos) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return false;
}

}  // namespace kolo
