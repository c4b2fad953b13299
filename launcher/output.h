// What the ranks and mpirun write, on its way to kolorun's own stdout and stderr: streams cut into lines,
// mpirun's tagged stream taken apart into the ranks', whole lines with the rank before them.
#pragma once

#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <kolo/launcher/banner.h>
#include <kolo/launcher/hydra_words.h>
#include <kolo/launcher/options.h>
#include <kolo/launcher/output_files.h>
#include <kolo/launcher/rank_starter.h>

namespace kolo::launcher {

/// Bytes in, whole lines out. A carriage return ends a line, too: what a program rewrites in place is shown
/// when it is written. A line of more than 1 MiB comes in pieces of that.
class LineCutter {
 public:
  /// end: the newline or carriage return that ended the line, which `line` is without. A newline right behind
  /// a carriage return comes with is_rest and the line that came before: that one stands there already.
  struct Piece {
    std::string_view line;
    char end = '\n';
    bool is_rest = false;
  };
  using Take = std::function<void(const Piece&)>;
  void feed(std::string_view bytes, const Take& take);
  /// The last line, if nothing ended it.
  void finish(const Take& take);
  /// To be called while a line is taken: what follows continues this one.
  void continue_with(std::string line) { continued_ = std::move(line); }

 private:
  void cut(const Take& take, char end);

  std::string started_, continued_;
  std::optional<std::string> returned_;  // the last piece, where it ended by a carriage return
};

inline constexpr int kMpirunItself = -1;  // in place of a rank: bytes that mpirun wrote itself

/// Undoes mpirun's --tag-output: `[1,0]<stdout>:` stands before each line and again wherever a line was
/// handed on in two pieces; in between another rank's piece may stand.
class TagSplitter {
 public:
  using Take = std::function<void(int rank, std::string_view bytes)>;
  /// has_blank: a blank follows each tag, as from Open MPI 5 on.
  explicit TagSplitter(bool has_blank = false) : has_blank_(has_blank) {}
  /// Bytes may be cut anywhere, inside a tag as well. Newlines are handed on.
  void feed(std::string_view bytes, const Take& take);
  /// What was held back because it might have become a tag.
  void finish(const Take& take);

 private:
  bool has_blank_;
  std::string held_;
  int rank_ = kMpirunItself;
};

enum class Stream { out, err };

/// Bytes on their way to a file descriptor that may be slow to take them: nothing here waits.
class OutputSink {
 public:
  explicit OutputSink(int fd) : fd_(fd), is_terminal_(isatty(fd) == 1) {}
  void add_line(std::string_view line, char end = '\n');
  /// Writes what can be written without waiting. False once nobody reads any more; all is then dropped. So it
  /// is where the disk is full, for which the job goes on.
  bool write_some();
  /// Why text was dropped though somebody may read it, told once; "" if none was.
  std::string take_error() { return std::exchange(error_, ""); }
  size_t pending_bytes() const { return pending_.size() - written_; }
  void drop() { pending_.clear(), written_ = 0; }
  int fd() const { return fd_; }
  bool is_terminal() const { return is_terminal_; }

 private:
  int fd_;
  bool is_terminal_;
  std::string pending_;
  size_t written_ = 0;
  bool has_failed_ = false;
  std::string error_;
};

/// Writes the line to stderr. One that cannot be written is lost: no job ends for it.
void tell_user(const std::string& line);

/// The line as it is printed: with `[rank] ` before it where `prefix` asks for it.
std::string with_prefix(Prefix prefix, int ranks, int rank, std::string_view line);

struct ToldStep {
  std::int64_t step = 0;
  std::chrono::milliseconds age{0};
  std::optional<std::int64_t> of = {};  // the step at which the training is to end
  bool operator==(const ToldStep&) const = default;
};
/// Lines of a rank on stderr that carry its last step (kLastStepMarker): that is taken out of `line`.
std::optional<ToldStep> take_last_step(std::string& line);

/// Lines of a rank on stderr that tell how long a save took (kSaveTookMarker): that is taken out of `line`.
std::optional<std::chrono::milliseconds> take_save_time(std::string& line);

/// Lines of a rank on stderr that name its host as one that is about to go (kHostGoesMarker): that is taken
/// out of `line`. "" for none.
std::string take_going_host(std::string& line);

/// Lines of a rank on stderr that tell that it takes requests (kTakesRequestsMarker): that is taken out.
bool take_readiness(std::string& line);

/// What a rank logs of one whose process or host is gone: `[0/6 node1] E … rank 4 on node3 is gone (last step
/// 80)`. Of a host that does not answer it names all ranks, else one.
struct GoneRank {
  std::string reporter;  // as in the brackets
  int rank = 0;
  std::string host;
};
std::optional<GoneRank> find_gone_rank(std::string_view line);

class OutputRouter {
 public:
  /// The sinks and files outlive the router. marks: what mpirun, or another, marks each line of a rank with;
  /// nothing: it marks none. files: those of --log-dir, or none.
  OutputRouter(const Options& options, std::optional<LineMarks> marks, OutputSink& out, OutputSink& err,
               OutputFiles* files = nullptr);

  void from_rank(int rank, Stream stream, std::string_view bytes);
  void from_mpirun(Stream stream, std::string_view bytes);
  /// A line of kolorun's own, on stderr.
  void say(const std::string& line) { add(Stream::err, line); }
  /// A line for job.log alone.
  void note(std::string_view line);
  /// Lets lines without a newline go. Call once, when all have ended.
  void finish();

  const BannerReader& banner() const { return banner_; }
  void take_out_states(bool tells_all) { banner_.take_out_states(tells_all); }
  /// Whether anything of mpirun's or srun's own was to be printed on stderr.
  bool launcher_has_spoken() const { return launcher_has_spoken_; }
  /// The largest step that a rank has told.
  std::optional<std::int64_t> last_step() const { return last_step_; }
  /// When that was completed.
  std::optional<std::chrono::steady_clock::time_point> last_step_at() const { return last_step_at_; }
  /// The step at which the training is to end, as a rank has told it that was stopped.
  std::optional<std::int64_t> planned_steps() const { return planned_steps_; }
  /// How long the last save took.
  std::optional<std::chrono::milliseconds> last_save() const { return last_save_; }
  /// A host of which one rank has said that several ranks there are gone: it does not answer. "" for none.
  const std::string& silent_host() const { return silent_host_; }
  /// Hosts that are about to go, as ranks there have told.
  const std::vector<std::string>& going_hosts() const { return going_hosts_; }
  /// True since all ranks take requests to stop: each has said so, or they have met in a step.
  bool take_requests() const { return ready_ranks_ >= ranks_ || last_step_; }
  /// True since a rank has said that the ranks compute different things.
  bool ranks_disagree() const { return ranks_disagree_; }

 private:
  bool take_marks(std::string& line);
  void look_at_words(std::string_view line);
  void take_words_of_hydra();
  bool holds_blank(Stream stream, std::string_view line);
  void take_labelled(Stream stream, const LineCutter::Piece& piece);
  void take_line(int rank, Stream stream, const LineCutter::Piece& piece, LineCutter* cutter = nullptr);
  void add(Stream stream, std::string line, char end = '\n');
  void keep(int rank, std::string_view line);
  void add_launchers(const std::vector<std::string>& lines);
  OutputSink& sink(Stream stream) { return stream == Stream::out ? out_ : err_; }

  const Prefix prefix_;
  const int ranks_;
  const std::optional<LineMarks> marks_;
  const bool by_hydra_, quiet_;
  const int stopped_code_;
  OutputSink& out_;
  OutputSink& err_;
  BannerReader banner_;
  OutputFiles* const files_;
  std::array<TagSplitter, 2> splitters_;  // by Stream
  HydraWords hydra_;
  std::array<int, 2> blank_lines_{};  // by Stream: of hydra's, or before its page
  std::map<std::pair<int, Stream>, LineCutter> cutters_;
  std::optional<std::int64_t> last_step_, planned_steps_;
  std::optional<std::chrono::milliseconds> last_save_;
  std::optional<std::chrono::steady_clock::time_point> last_step_at_;
  std::map<std::string, GoneRank> gone_ranks_;  // the first one, by who has said it
  std::string silent_host_;
  std::vector<std::string> going_hosts_;
  int ready_ranks_ = 0;  // that take requests
  bool ranks_disagree_ = false;
  bool launcher_has_spoken_ = false;
  bool line_open_ = false;  // on the terminal stands a line that is to be rewritten
};

}  // namespace kolo::launcher
