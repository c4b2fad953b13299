// kolorun --log-dir: what the ranks print, in files.
#pragma once

#include <fstream>
#include <map>
#include <string>
#include <string_view>

namespace kolo::launcher {

/// Appends to rank_N.log, and to job.log, of one folder, so that a job that is started again goes on there.
class OutputFiles {
 public:
  /// Makes the folder, job.log, and the file of each rank, which stays empty where a rank prints nothing.
  /// Throws FailedPreconditionError if that cannot be done.
  OutputFiles(const std::string& folder, int ranks);

  /// A line that rank has printed, as it is.
  void add_of_rank(int rank, std::string_view line);
  /// A line of job.log, as kolorun prints it.
  void add(std::string_view line);
  /// The first failure to write, once; "" where there is none to tell.
  std::string take_error();

 private:
  void write(std::ofstream& file, const std::string& path, std::string_view line);

  const std::string folder_;
  std::ofstream all_;
  std::map<int, std::ofstream> of_rank_;
  std::string error_;
  bool has_failed_ = false;
};

}  // namespace kolo::launcher
