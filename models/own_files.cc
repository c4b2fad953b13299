#include <kolo/models/own_files.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <kolo/core/base/csv_line.h>
#include <kolo/core/training/checkpoint_files.h>
#include <kolo/core/training/folder_lock.h>
#include <kolo/core/training/inference_graph.h>
#include <kolo/models/csv_fields.h>
#include <kolo/models/folder_config.h>
#include <kolo/models/learnt_file.h>
#include <kolo/models/paths.h>
#include <kolo/models/pictures.h>

namespace kolo::models::detail {
namespace {

namespace fs = std::filesystem;

// `pets.csv:17` and `x.npy[3]`, as --predict calls its samples.
bool names_a_row(std::string_view name) {
  const bool is_of_array = name.ends_with(']');
  if (is_of_array) name.remove_suffix(1);
  const std::size_t mark = name.find_last_of(is_of_array ? '[' : ':');
  if (mark == std::string_view::npos || mark + 1 == name.size()) return false;
  const std::string_view number = name.substr(mark + 1);
  return std::all_of(number.begin(), number.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// Two lines of a file, as far as they are not very long.
std::vector<std::vector<std::string>> first_rows(const fs::path& table) {
  constexpr std::size_t kMostBytes = std::size_t{1} << 16;
  std::string text(kMostBytes, '\0');
  std::ifstream file(table, std::ios::binary);
  file.read(text.data(), std::ssize(text));
  text.resize(static_cast<std::size_t>(file.gcount()));
  std::vector<std::vector<std::string>> rows;
  std::vector<std::string_view> fields;
  for (std::size_t begin = 0; begin < text.size() && rows.size() < 2;) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    split_fields(std::string_view(text).substr(begin, end - begin), ',', fields);
    rows.emplace_back();
    for (const std::string_view field : fields) rows.back().push_back(unquoted(field));
    begin = end + 1;
  }
  return rows;
}

}  // namespace

bool is_own_file(const fs::path& file) {
  const std::string name = file.filename().string();
  for (const std::string_view own : {std::string_view("metrics.jsonl"), std::string_view(kInferenceGraphFile),
                                     std::string_view(kolo::detail::kLockFile)})
    if (name == own) return true;
  for (const std::string& own : {std::string(kCheckpointBasename) + "-", std::string("events.out.tfevents.")})
    if (name.starts_with(own)) return true;
  const bool may_be_anything = name == "checkpoint" || name == "testing.txt" || name == kFolderConfigFile ||
                               name.starts_with(kLearntFilePrefix);
  const fs::path folder = file.parent_path();
  return may_be_anything && is_file(folder / "checkpoint") && is_file(folder / kFolderConfigFile);
}

bool is_own_folder(const fs::path& folder) {
  bool is_own = false;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    if (entry->path().filename().string().starts_with('.') || !is_file(entry->path())) continue;
    if (is_image_name(entry->path())) return false;
    is_own |= is_own_file(entry->path());
  }
  return is_own;
}

bool are_predictions(const fs::path& table) {
  if (!is_file(table)) return false;  // a pipe would be waited for
  const auto rows = first_rows(table);
  if (rows.size() < 2 || rows[0].size() < 2 || (rows[0][0] != "name" && rows[0][0] != "sample") ||
      rows[1].size() != rows[0].size())
    return false;
  const std::string& sample = rows[1][0];
  const auto begins = [&](const char* second, const char* third) {
    return rows[0].size() > 2 && rows[0][1] == second && rows[0][2] == third;
  };
  if (begins("class", "share") || begins("label", "probability"))
    return names_a_row(sample) || is_image_name(sample);
  const bool are_numbers = std::all_of(rows[1].begin() + 1, rows[1].end(),
                                       [](const std::string& cell) { return number_in(cell).has_value(); });
  return are_numbers && (names_a_row(sample) || is_image_name(sample));
}

bool may_be_replaced(const fs::path& file) {
  if (!is_file(file)) return true;
  if (file.extension() != ".csv") {
    std::string line;
    std::getline(std::ifstream(file), line);
    return line.starts_with(R"({"name":)") || line.starts_with(R"({"sample":)");
  }
  const auto rows = first_rows(file);
  return are_predictions(file) || (rows.size() == 1 && rows[0][0] == "name");
}

}  // namespace kolo::models::detail
