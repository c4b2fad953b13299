// Streams of bytes cut into lines, and mpirun's tagged stream taken apart into the streams of the ranks.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace kolo::launcher {

/// Bytes in, whole lines out, without their newline.
class LineCutter {
 public:
  void feed(std::string_view bytes, const std::function<void(std::string_view line)>& take);
  /// The last line, if it had no newline.
  void finish(const std::function<void(std::string_view line)>& take);

 private:
  std::string started_;
};

inline constexpr int kMpirunItself = -1;  // in place of a rank: bytes that mpirun wrote itself

/// Undoes mpirun's --tag-output: `[1,0]<stdout>:` stands before each line and again wherever a line was
/// handed on in two pieces; in between another rank's piece may stand.
class TagSplitter {
 public:
  using Take = std::function<void(int rank, std::string_view bytes)>;
  /// Bytes may be cut anywhere, inside a tag as well. Newlines are handed on.
  void feed(std::string_view bytes, const Take& take);
  /// What was held back because it might have become a tag.
  void finish(const Take& take);

 private:
  std::string held_;
  int rank_ = kMpirunItself;
};

}  // namespace kolo::launcher
