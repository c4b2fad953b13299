#include <kolo/launcher/program_search.h>

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <vector>

#include <kolo/core/base/error.h>
#include <kolo/core/base/text.h>

namespace kolo::launcher {
namespace {

namespace fs = std::filesystem;

bool is_program(const std::string& path) {
  std::error_code ignored;  // not being able to look is "no"
  return fs::is_regular_file(path, ignored) && access(path.c_str(), X_OK) == 0;
}

std::vector<std::string> programs_beside() {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(own_folder(), error), end; !error && entry != end; entry.increment(error))
    if (is_program(entry->path())) names.push_back(entry->path().filename());
  return names;
}

}  // namespace

std::string own_folder() {
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  return error ? "." : self.parent_path().string();
}

std::string find_in_path(const std::string& name) {
  const char* path = std::getenv("PATH");
  std::string_view rest = path == nullptr ? "/usr/local/bin:/usr/bin:/bin" : path;
  while (true) {
    const size_t colon = rest.find(':');
    const std::string folder(rest.substr(0, colon));
    const std::string candidate = (folder.empty() ? "." : folder) + "/" + name;
    if (is_program(candidate)) return candidate;
    if (colon == std::string_view::npos) return "";
    rest.remove_prefix(colon + 1);
  }
}

std::string find_program(const std::string& name) {
  if (name.find('/') != std::string::npos) {
    if (is_program(name)) return name;
    throw NotFoundError("program {} {}", name,
                        fs::exists(name) ? "is not an executable file" : "does not exist");
  }
  if (!find_in_path(name).empty()) return name;
  const std::string beside = own_folder() + "/" + name;
  if (is_program(beside)) return beside;
  throw NotFoundError("program {} was found neither in PATH nor beside kolorun in {}{}", name, own_folder(),
                      did_you_mean(name, programs_beside()));
}

}  // namespace kolo::launcher
