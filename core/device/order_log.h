// What was put on streams and what waits for what, written to a file that tests/support/order_checker.h
// judges: KOLO_CUDA_LOG=FILE (FILE.RANK where there are several ranks). A line each, its fields apart by
// tabs:
//   use     actor, thread, name, ranges read, ranges written   a range: ADDRESS+BYTES
//   record  actor, token    the token stands for all that the actor has done, or been given, so far
//   wait    actor, tokens   what the actor does from now on comes behind what they stand for
//   begin   thread, tokens  the same, and behind nothing else: what the thread did before was chance
//   free    thread, range
// An actor is a stream or a thread of the host.
#pragma once

#include <cstddef>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include <kolo/core/base/mutex.h>

namespace kolo {

/// Any thread.
class OrderLog {
 public:
  struct Range {
    const void* begin;
    std::size_t bytes;
  };

  /// nullptr, unless KOLO_CUDA_LOG names a file or a test has opened one.
  static OrderLog* active();
  /// From now on to `file`, until close(). Of sessions that are made meanwhile. Throws NotFoundError where it
  /// cannot be written.
  static void open(const std::string& file);
  static void close();

  /// The calling thread.
  static std::string this_thread();

  /// actor: this_thread(), or a stream that the calling thread gives something.
  void use(const std::string& actor, const std::string& name, const std::vector<Range>& reads,
           const std::vector<Range>& writes);
  void record(const std::string& actor, const std::string& token);
  void wait(const std::string& actor, const std::string& tokens);
  void begin(const std::string& tokens);
  void free(Range range);

 private:
  explicit OrderLog(const std::string& file);
  void write(const std::string& line) KOLO_EXCLUDES(mutex_);

  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  Mutex mutex_;
  const std::unique_ptr<std::FILE, Close> file_;
};

}  // namespace kolo
