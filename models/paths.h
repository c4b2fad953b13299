// Whether a path is there; one that cannot be examined is not.
#pragma once

#include <filesystem>
#include <system_error>

namespace kolo::models::detail {

inline bool is_file(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored);
}

inline bool is_folder(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::is_directory(path, ignored);
}

}  // namespace kolo::models::detail
