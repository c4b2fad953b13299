// The logs of several trainings: found below folders, read, and named by what tells their paths apart.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <kolo/launcher/training_curves.h>

namespace kolo::launcher {

inline constexpr int kDeepestLog = 8;          // folders below the one that is searched
inline constexpr std::size_t kMostLogs = 100;  // below one folder

/// A file: itself. A folder: each metrics.jsonl below it, and each .csv, .tsv, .txt or .log that
/// is_csv_log(), in the order of their paths, 2 before 10. Hidden folders and links to folders are not
/// searched. Throws std::runtime_error where `path` does not exist, or the folder holds none or more than
/// kMostLogs.
std::vector<std::filesystem::path> find_logs(const std::string& path);

/// For each file the part of its path that the others do not share: a and b for runs/a/logs/metrics.jsonl and
/// runs/b/logs/metrics.jsonl. No two names are equal. The files differ.
std::vector<std::string> distinct_names(const std::vector<std::filesystem::path>& files);

struct TrainingLogs {
  std::vector<TrainingRun> runs;
  std::vector<std::string> notes;     // sentences: the logs found in a folder, those left out, x as rows
  std::vector<std::string> failures;  // of paths that gave no run
};

/// All of `paths` that can be read. x is the step where all logs know it, else the epoch. In a folder that
/// holds other logs a bad log is left out with a note.
TrainingLogs read_logs(const std::vector<std::string>& paths);

}  // namespace kolo::launcher
