#include <kolo/launcher/training_logs.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <set>
#include <stdexcept>
#include <system_error>

#include <kolo/core/base/error.h>
#include <kolo/core/base/input_file.h>

namespace kolo::launcher {
namespace {

namespace fs = std::filesystem;

constexpr char kMetrics[] = "metrics.jsonl";
constexpr int kMostEntries = 200'000;  // looked at below a folder

bool may_be_csv(const fs::path& file) {
  constexpr std::array<const char*, 4> kSuffixes = {".csv", ".tsv", ".txt", ".log"};
  return std::find(kSuffixes.begin(), kSuffixes.end(), file.extension()) != kSuffixes.end();
}

// A log that vanishes while it is looked at is none.
bool is_log(const fs::directory_entry& entry) {
  std::error_code error;
  if (!entry.is_regular_file(error)) return false;
  return entry.path().filename() == kMetrics ||
         (may_be_csv(entry.path()) && is_csv_log(entry.path().string()));
}

std::vector<fs::path> logs_below(const fs::path& folder) {
  std::vector<fs::path> logs;
  std::error_code error;
  int entries = 0;
  for (fs::recursive_directory_iterator at(folder, fs::directory_options::skip_permission_denied, error), end;
       !error && at != end; at.increment(error)) {
    if (at.depth() >= kDeepestLog || at->path().filename().string().starts_with("."))
      at.disable_recursion_pending();
    if (is_log(*at)) logs.push_back(at->path());
    if (logs.size() > kMostLogs || ++entries > kMostEntries)
      throw std::runtime_error(fmt::format("{}: there are more than {} below it; name the folders to plot",
                                           folder.string(),
                                           logs.size() > kMostLogs ? fmt::format("{} logs", kMostLogs)
                                                                   : fmt::format("{} files", kMostEntries)));
  }
  if (error) throw std::runtime_error(fmt::format("{}: {}", folder.string(), error.message()));
  std::sort(logs.begin(), logs.end(), [](const fs::path& a, const fs::path& b) {  // 2 comes before 10
    return strverscmp(a.c_str(), b.c_str()) < 0;
  });
  return logs;
}

// The names on the way to the log, its own last: that of its folder, or of the file.
std::vector<std::string> way_to(const fs::path& file, bool with_suffix) {
  const fs::path whole = fs::absolute(file).lexically_normal();
  const fs::path named = whole.filename() == kMetrics && !with_suffix ? whole.parent_path()
                         : with_suffix                                ? whole
                                                                      : whole.parent_path() / whole.stem();
  std::vector<std::string> way;
  for (const fs::path& part : named)
    if (part != "/") way.push_back(part.string());
  if (way.empty()) way.emplace_back("/");
  return way;
}

using Ways = std::vector<std::vector<std::string>>;

template <typename Entry>
bool all_differ(const std::vector<Entry>& entries) {
  return std::set<Entry>(entries.begin(), entries.end()).size() == entries.size();
}

// Of all ways, how many names are the same at the start, or at the end, of the shortest one's first `most`.
std::size_t shared_names(const Ways& ways, std::size_t most, bool at_end) {
  const auto name = [&](const std::vector<std::string>& way, std::size_t i) {
    return at_end ? way[way.size() - 1 - i] : way[i];
  };
  std::size_t shared = 0;
  while (shared < most && std::all_of(ways.begin(), ways.end(), [&](const auto& way) {
           return name(way, shared) == name(ways[0], shared);
         }))
    ++shared;
  return shared;
}

// Without so many names at both ends; where none is left, the last one of those at the start.
std::string between(const std::vector<std::string>& way, std::size_t start, std::size_t end) {
  if (start + end >= way.size()) return start == 0 ? way.back() : way[std::min(start, way.size()) - 1];
  std::string text;
  for (std::size_t i = start; i < way.size() - end; ++i) text += (text.empty() ? "" : "/") + way[i];
  return text;
}

struct Log {
  fs::path file;
  std::string text;
};

Log load(const fs::path& file) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 30;
  try {
    return {file, InputFile(file.string()).read_all(kMost)};
  } catch (const Error& error) {
    throw std::runtime_error(fmt::format("{}: cannot be read ({})", file.string(), error.what()));
  }
}

bool is_same_file(const fs::path& a, const fs::path& b) {
  std::error_code error;
  return fs::equivalent(a, b, error);
}

// The logs of one of the paths, behind those of the ones before.
void add_path(const std::string& path, std::vector<Log>& logs, TrainingLogs& result) {
  const std::vector<fs::path> files = find_logs(path);
  std::vector<std::string> failures;
  for (const fs::path& file : files) try {
      if (std::any_of(logs.begin(), logs.end(), [&](const Log& log) { return is_same_file(log.file, file); }))
        continue;
      Log log = load(file);
      result.runs.push_back(read_training(log.text, file.string(), false));
      logs.push_back(std::move(log));
    } catch (const std::runtime_error& error) {
      failures.emplace_back(error.what());
    }
  if (files.size() > 1 || (fs::is_directory(path) && !is_same_file(files[0].parent_path(), path)))
    result.notes.push_back(
        fmt::format("{}: {} log{} found", path, files.size(), files.size() == 1 ? "" : "s"));
  if (failures.size() == files.size()) {
    result.failures.push_back(
        files.size() == 1 ? failures[0]
                          : fmt::format("{}: none of the {} logs below it can be drawn; the first: {}", path,
                                        files.size(), failures[0]));
    return;
  }
  for (const std::string& failure : failures) result.notes.push_back("left out: " + failure);
}

}  // namespace

std::vector<fs::path> find_logs(const std::string& path) {
  if (!fs::exists(path))
    throw std::runtime_error(fmt::format(
        "{}: cannot be read; `plot` takes a folder of kolo-train --log-dir, one with such folders "
        "below it, or a CSV file with a header",
        path));
  if (!fs::is_directory(path)) return {path};
  std::vector<fs::path> logs = logs_below(path);
  if (logs.empty())
    throw std::runtime_error(
        fmt::format("{}: there is no log in it or up to {} folders below it; a log is a metrics.jsonl, or a "
                    ".csv, .tsv, .txt or .log file whose header has a column epoch, step or global_step",
                    path, kDeepestLog));
  return logs;
}

std::vector<std::string> distinct_names(const std::vector<fs::path>& files) {
  const auto ways_of = [&](bool with_suffix) {
    Ways ways;
    for (const fs::path& file : files) ways.push_back(way_to(file, with_suffix));
    return ways;
  };
  Ways ways = ways_of(false);
  if (!all_differ(ways)) ways = ways_of(true);
  std::vector<std::string> names;
  if (ways.empty()) return names;
  std::size_t shortest = ways[0].size();
  for (const auto& way : ways) shortest = std::min(shortest, way.size());
  std::size_t start = ways.size() == 1 ? shortest - 1 : shared_names(ways, shortest, false);
  std::size_t end = ways.size() == 1 ? 0 : shared_names(ways, shortest - start, true);
  for (;; start -= start > 0 ? 1 : 0, end = 0) {
    names.clear();
    for (const auto& way : ways) names.push_back(between(way, start, end));
    if (all_differ(names) || start == 0) return names;
  }
}

TrainingLogs read_logs(const std::vector<std::string>& paths) {
  TrainingLogs result;
  std::vector<Log> logs;
  for (const std::string& path : paths) try {
      add_path(path, logs, result);
    } catch (const std::runtime_error& error) {
      result.failures.emplace_back(error.what());
    }
  const auto is_by_epoch = [](const TrainingRun& run) { return run.x == "epoch"; };
  const bool by_epoch = std::any_of(result.runs.begin(), result.runs.end(), is_by_epoch);
  std::vector<fs::path> files;
  for (const Log& log : logs) files.push_back(log.file);
  const std::vector<std::string> names = distinct_names(files);
  for (std::size_t i = 0; i < logs.size(); ++i) {
    if (by_epoch) try {
        result.runs[i] = read_training(logs[i].text, files[i].string(), true);
      } catch (const std::runtime_error& error) {
        result.notes.push_back(fmt::format("by steps, as its epochs cannot be read: {}", error.what()));
      }
    result.runs[i].name = names[i];
    if (result.runs[i].x == "row")
      result.notes.push_back(fmt::format(
          "{}: x is the row's number, as there is no column epoch, step or global_step", files[i].string()));
  }
  return result;
}

}  // namespace kolo::launcher
