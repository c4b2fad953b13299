// The system calls with which kolo changes files, as they are made, and failures in their place. A test that
// is linked with recorded_calls.cc calls these functions instead of the C library's, which they then call.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace kolo {

/// Of one folder, as long as it lives; one at a time. A call is its name and the file's, "rename
/// model.ckpt-3. index.json": without the folder ("." is the folder itself) and without the digits that make
/// a temporary name unique ("write checkpoint.tmp"). What is renamed goes by its new name.
class RecordedCalls {
 public:
  explicit RecordedCalls(const std::string& folder);
  ~RecordedCalls();
  RecordedCalls(const RecordedCalls&) = delete;
  RecordedCalls& operator=(const RecordedCalls&) = delete;

  /// write, fsync, rename and unlink, in their order; writes of one file that follow each other once.
  std::vector<std::string> calls() const;
  /// Both were made, and the last `first` before the first `second`.
  bool is_before(const std::string& first, const std::string& second) const;
  /// Fails from now on with this errno: one of those above, "open <file>", "read <file>", "list .", "lock
  /// <file>".
  void fail(const std::string& call, int error_number);
  /// Does this before the first such call: what another process might.
  void before(const std::string& call, std::function<void()> action);
};

}  // namespace kolo
