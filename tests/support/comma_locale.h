// A program that speaks its user's language, in which a comma stands before a fraction.
#pragma once

#include <unistd.h>

#include <clocale>
#include <cstdlib>
#include <filesystem>
#include <string>

namespace kolo {

/// setlocale(LC_ALL, "de_DE.UTF-8") while it lives, from a locale that it makes by localedef. is_set(): false
/// where the machine lacks localedef or the sources of locales. One at a time, on the only thread.
class CommaLocale {
 public:
  CommaLocale() {
    std::filesystem::create_directories(folder_);
    const std::string make = "localedef -i de_DE -f UTF-8 " + folder_ + "/de_DE.UTF-8 >/dev/null 2>&1";
    if (std::system(make.c_str()) != 0) return;
    setenv("LOCPATH", folder_.c_str(), 1);
    std::setlocale(LC_ALL, "de_DE.UTF-8");
    unsetenv("LOCPATH");
  }
  CommaLocale(const CommaLocale&) = delete;
  CommaLocale& operator=(const CommaLocale&) = delete;
  ~CommaLocale() {
    std::setlocale(LC_ALL, "C");
    std::filesystem::remove_all(folder_);
  }
  bool is_set() const { return std::string(std::localeconv()->decimal_point) == ","; }

 private:
  const std::string folder_ =
      std::filesystem::temp_directory_path() / ("kolo_locale_" + std::to_string(getpid()));
};

}  // namespace kolo
