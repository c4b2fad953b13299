// Which of a library's engines computes what on a GPU, as measured there: kept in a file, so that a run that
// is resumed has the engines, and so the bits, of the one before, and measures nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <kolo/core/base/mutex.h>

namespace kolo {

struct EngineChoice {
  std::int64_t engine = 0;  // the library's number
  std::int64_t place = 0;   // among those that can be asked, in the library's order
  bool by_time = false;     // the fastest of several; else the first that served
  double milliseconds = 0;  // where by_time
};

struct EngineEntry {
  std::string machine;   // GPU, driver and library, with their versions
  std::string question;  // what is computed
  EngineChoice choice;
};

/// The entries of such a file, in its order. Throws FileError's kinds where it cannot be read, DataLossError
/// where it is not one.
std::vector<EngineEntry> read_engine_file(const std::string& path);

/// One file and what it holds. Any thread. Other processes may read the file at any time; of two that write
/// to it the last one's entries stay.
class EngineBook {
 public:
  /// Reads the file. A damaged one is told in a warning and begun anew.
  explicit EngineBook(std::string path);

  /// Nothing where it was not asked on this machine. One info line then says for which the question was
  /// answered, if the file is for others alone.
  std::optional<EngineChoice> find(const std::string& machine, const std::string& question)
      KOLO_EXCLUDES(mutex_);
  /// In the file when it returns; a file that cannot be written is told in one warning.
  void note(const std::string& machine, const std::string& question, const EngineChoice& choice)
      KOLO_EXCLUDES(mutex_);
  const std::string& path() const { return path_; }

 private:
  void write() const KOLO_REQUIRES(mutex_);

  const std::string path_;
  Mutex mutex_;
  std::vector<EngineEntry> entries_ KOLO_GUARDED_BY(mutex_);
  bool told_of_others_ KOLO_GUARDED_BY(mutex_) = false;
  bool told_of_failure_ KOLO_GUARDED_BY(mutex_) = false;
};

/// This process's: the file KOLO_ENGINES, else engines.json in the folder that was proposed last; nullptr
/// where there is neither, or a rank other than the first does not see the folder. With several ranks the
/// file is FILE.RANK. It lives as long as the process.
EngineBook* engine_book();
/// Of checkpoints. Books are opened when they are first asked for.
void propose_engine_folder(const std::string& folder);

}  // namespace kolo
