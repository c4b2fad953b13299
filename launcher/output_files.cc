#include <kolo/launcher/output_files.h>

#include <fmt/core.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include <kolo/core/base/error.h>

namespace kolo::launcher {
namespace {

std::string path_of_all(const std::string& folder) { return folder + "/job.log"; }

std::string path_of_rank(const std::string& folder, int rank) {
  return fmt::format("{}/rank_{}.log", folder, rank);
}

}  // namespace

OutputFiles::OutputFiles(const std::string& folder, int ranks) : folder_(folder) {
  std::error_code failed;
  std::filesystem::create_directories(folder_, failed);
  errno = 0;
  if (!failed) all_.open(path_of_all(folder_), std::ios::app);
  bool good = !failed && all_;
  // Not kept open: a rank that is silent needs no descriptor.
  for (int rank = 0; good && rank < ranks; ++rank)
    good = std::ofstream(path_of_rank(folder_, rank), std::ios::app).is_open();
  if (!good)
    throw FailedPreconditionError("--log-dir {}: the files cannot be written: {}", folder_,
                                  failed ? failed.message() : std::strerror(errno));
}

void OutputFiles::write(std::ofstream& file, const std::string& path, std::string_view line) {
  if (file) errno = 0;  // else it is that of opening it
  file << line << '\n' << std::flush;
  if (file || std::exchange(has_failed_, true)) return;
  error_ = fmt::format(
      "kolorun: {} cannot be written: {}; lines are missing there, and maybe in the others of --log-dir",
      path, std::strerror(errno));
}

void OutputFiles::add_of_rank(int rank, std::string_view line) {
  const std::string path = path_of_rank(folder_, rank);
  auto [entry, is_new] = of_rank_.try_emplace(rank);
  errno = 0;
  if (is_new) entry->second.open(path, std::ios::app);
  write(entry->second, path, line);
}

void OutputFiles::add(std::string_view line) { write(all_, path_of_all(folder_), line); }

std::string OutputFiles::take_error() { return std::exchange(error_, ""); }

}  // namespace kolo::launcher
