// The threads of this process.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace kolo {

inline std::vector<std::string> thread_names() {
  std::vector<std::string> names;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream file(task.path() / "comm");
    std::getline(file, names.emplace_back());
  }
  return names;
}

}  // namespace kolo
