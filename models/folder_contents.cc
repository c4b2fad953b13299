#include <kolo/models/folder_contents.h>

#include <fmt/format.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include <kolo/models/data.h>
#include <kolo/models/own_files.h>

namespace kolo::models::detail {
namespace {

namespace fs = std::filesystem;

// Calls `take` with each entry that is not hidden.
template <typename Take>
void for_each_entry(const fs::path& folder, const Take& take) {
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
    if (!entry->path().filename().string().starts_with('.')) take(*entry);
}

}  // namespace

std::string last_name(const fs::path& path) {
  const fs::path name = fs::absolute(path).lexically_normal();
  return (name.has_filename() ? name : name.parent_path()).filename().string();
}

std::string kind_of_file(const fs::path& path) {
  if (is_own_file(path)) return "files of kolo's checkpoints and logs";
  if (is_table_name(path) && are_predictions(path)) return "tables of predictions";
  const std::string ending = path.extension().string();
  return ending.empty() ? "files without an ending" : ending;
}

void add_left_out(const fs::path& folder, const std::vector<std::string>& taken, LeftOut& left_out) {
  for_each_entry(folder, [&](const fs::directory_entry& entry) {
    const std::string name = entry.path().filename().string();
    if (std::find(taken.begin(), taken.end(), name) != taken.end()) return;
    std::error_code ignored;
    ++left_out[entry.is_directory(ignored) ? fmt::format("folder {}/", name) : kind_of_file(entry.path())];
  });
}

bool is_hidden_folder(const fs::path& folder) {
  if (last_name(folder) == "__MACOSX") return true;
  bool has_hidden = false;
  std::error_code error;
  for (fs::recursive_directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const bool is_hidden = entry->path().filename().string().starts_with('.');
    std::error_code ignored;
    // A link to a folder may lead to anything.
    const bool is_plain_folder = entry->is_directory(ignored) && !entry->is_symlink(ignored);
    if (!is_hidden && !is_plain_folder) return false;
    has_hidden |= is_hidden;
    if (is_hidden && is_plain_folder) entry.disable_recursion_pending();
  }
  return has_hidden && !error;
}

std::vector<std::string> files_in(const fs::path& folder) {
  std::vector<std::string> names;
  for_each_entry(folder, [&](const fs::directory_entry& entry) {
    std::error_code ignored;
    if (entry.is_regular_file(ignored)) names.push_back(entry.path().filename().string());
  });
  std::sort(names.begin(), names.end());
  return names;
}

std::string left_out_beside(const fs::path& folder, const std::vector<std::string>& taken) {
  LeftOut left_out;
  add_left_out(folder, taken, left_out);
  return left_out_text(left_out);
}

std::string contents_of(const fs::path& folder) {
  constexpr std::size_t kMostKinds = 4;
  std::map<std::string, int> counts;
  for_each_entry(folder, [&](const fs::directory_entry& entry) {
    std::error_code ignored;
    ++counts[entry.is_directory(ignored) ? "folders" : kind_of_file(entry.path())];
  });
  std::vector<std::pair<int, std::string>> sorted;
  for (const auto& [kind, count] : counts) sorted.emplace_back(-count, kind);
  std::sort(sorted.begin(), sorted.end());
  std::string text;
  for (std::size_t i = 0; i < std::min(sorted.size(), kMostKinds); ++i)
    text += (text.empty() ? "" : ", ") + count_of_kind(-sorted[i].first, sorted[i].second);
  if (sorted.size() > kMostKinds) text += fmt::format(" and {} other kinds", sorted.size() - kMostKinds);
  return text.empty() ? "nothing" : text;
}

}  // namespace kolo::models::detail
