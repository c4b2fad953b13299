// Whether a path is there; one that cannot be examined is not.
#pragma once

#include <filesystem>
#include <system_error>

#include <kolo/core/base/error.h>

namespace kolo::models::detail {

inline bool is_file(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored);
}

inline bool is_folder(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::is_directory(path, ignored);
}

/// For a path behind --data that is a file, or not there.
[[noreturn]] inline void throw_no_folder(const std::filesystem::path& path) {
  std::error_code ignored;
  if (std::filesystem::exists(path, ignored))
    throw NotFoundError("--data {}: a file, and no folder", path.string());
  throw NotFoundError("--data {}: there is no such file or folder", path.string());
}

}  // namespace kolo::models::detail
