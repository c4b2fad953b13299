#include <kolo/launcher/output.h>

#include <fmt/core.h>
#include <poll.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <optional>
#include <utility>

#include <kolo/core/base/stop_signal.h>
#include <kolo/core/base/stop_time.h>
#include <kolo/core/base/text.h>
#include <kolo/launcher/srun_command.h>

namespace kolo::launcher {
namespace {

struct Tag {
  bool complete = false;  // false: the text ended inside of what may become a tag
  int rank = 0;
  size_t length = 0;
};

// `[1,0]<stdout>:` at the start of `text`; nothing if no tag stands there, however the text goes on.
std::optional<Tag> match_tag(std::string_view text, bool has_blank) {
  size_t at = 0;
  const auto literal = [&](char c) { return at < text.size() && text[at] == c ? ++at, true : false; };
  const auto digits = [&] {
    const size_t start = at;
    while (at < text.size() && std::isdigit(static_cast<unsigned char>(text[at]))) ++at;
    return text.substr(start, at - start);
  };
  const auto cut_or_none = [&] { return at == text.size() ? std::optional<Tag>(Tag{}) : std::nullopt; };

  if (!literal('[')) return cut_or_none();
  if (digits().empty() || !literal(',')) return cut_or_none();
  const std::string_view number = digits();
  if (number.empty() || number.size() > 9 || !literal(']')) return cut_or_none();
  for (const std::string_view stream : {"<stdout>:", "<stderr>:", "<stddiag>:"}) {
    const std::string_view there = text.substr(at, stream.size());
    if (there != stream.substr(0, there.size())) continue;
    const size_t length = stream.size() + (has_blank ? 1 : 0);
    if (text.size() - at < length) return Tag{};
    Tag tag{true, 0, at + length};
    std::from_chars(number.data(), number.data() + number.size(), tag.rank);
    return tag;
  }
  return std::nullopt;
}

}  // namespace

void LineCutter::cut(const Take& take, char end) {
  // What starts with a carriage return, "\r50%", has nothing before it that would have to be shown.
  const bool is_new = !started_.empty();
  const bool is_rest = !is_new && returned_;
  if (is_rest) started_ = *std::move(returned_);
  if (end == '\n' || is_new) take({started_, end, is_rest});
  returned_.reset();
  if (end == '\r') returned_ = std::move(started_);
  started_ = std::exchange(continued_, {});
}

void LineCutter::feed(std::string_view bytes, const Take& take) {
  constexpr size_t kLongest = 1 << 20;
  while (!bytes.empty()) {
    const size_t end = bytes.find_first_of("\r\n");
    const size_t room = kLongest - started_.size();
    started_.append(bytes.substr(0, std::min(end, room)));
    if (end > room && bytes.size() > room) {
      bytes.remove_prefix(room);
      cut(take, '\n');
      continue;
    }
    if (end == std::string_view::npos) return;
    cut(take, bytes[end]);
    bytes.remove_prefix(end + 1);
  }
}

void LineCutter::finish(const Take& take) {
  if (!started_.empty()) cut(take, '\n');
}

void TagSplitter::feed(std::string_view bytes, const Take& take) {
  held_.append(bytes);
  std::string_view rest = held_;
  size_t plain = 0;  // bytes of `rest` that belong to rank_
  const auto hand_on = [&] {
    if (plain > 0) take(rank_, rest.substr(0, plain));
    rest.remove_prefix(plain);
    plain = 0;
  };
  while (plain < rest.size()) {
    const size_t next = rest.find_first_of("[\n", plain);
    if (next == std::string_view::npos) {
      plain = rest.size();
    } else if (rest[next] == '\n') {
      plain = next + 1;
      hand_on();
      rank_ = kMpirunItself;  // each line of a rank starts with a tag
    } else {
      plain = next;
      const std::optional<Tag> tag = match_tag(rest.substr(next), has_blank_);
      if (tag && !tag->complete) break;
      if (tag) {
        hand_on();
        rest.remove_prefix(tag->length);
        rank_ = tag->rank;
      } else {
        ++plain;
      }
    }
  }
  hand_on();
  held_.erase(0, held_.size() - rest.size());
}

void TagSplitter::finish(const Take& take) {
  if (!held_.empty()) take(rank_, held_);
  held_.clear();
}

namespace {

bool is_json_object(std::string_view line) {
  return !line.empty() && line.front() == '{' && nlohmann::json::accept(line.begin(), line.end());
}

// kolo's own log lines: `[1/4 node2] …`.
bool names_its_rank(int ranks, int rank, std::string_view line) {
  const std::string own = fmt::format("[{}/{} ", rank, ranks);
  return line.substr(0, own.size()) == own;
}

// In kolo's errors: "Ranks disagree on the training step: …", "init: the ranks differ in what they must
// share:", "Mismatched shapes for w: rank 0 has …".
bool says_ranks_disagree(std::string_view line) {
  return line.find("Ranks disagree on ") != std::string_view::npos ||
         line.find("the ranks differ in what they must share") != std::string_view::npos ||
         (line.find("Mismatched ") != std::string_view::npos &&
          line.find(": rank ") != std::string_view::npos);
}

}  // namespace

void OutputSink::add_line(std::string_view line, char end) {
  pending_.append(line);
  pending_ += end;
}

bool OutputSink::write_some() {
  while (pending_bytes() > 0) {
    // O_NONBLOCK would change the descriptor for all who share it. A pipe that polls writable takes 4096
    // bytes at once.
    constexpr size_t kWithoutWaiting = 4096;
    pollfd ready = {fd_, POLLOUT, 0};
    if (poll(&ready, 1, 0) <= 0) return true;
    const ssize_t count = write(fd_, pending_.data() + written_, std::min(kWithoutWaiting, pending_bytes()));
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return true;
    if (count < 0 && errno == EPIPE) {
      drop();
      return false;
    }
    if (count < 0) {
      if (!std::exchange(has_failed_, true)) error_ = std::strerror(errno);
      break;
    }
    written_ += count;
  }
  drop();
  return true;
}

void tell_user(const std::string& line) { std::fputs((line + "\n").c_str(), stderr); }

std::string with_prefix(Prefix prefix, int ranks, int rank, std::string_view line) {
  const bool bare = rank == kMpirunItself || prefix == Prefix::never ||
                    (prefix == Prefix::automatic &&
                     (ranks == 1 || is_json_object(line) || names_its_rank(ranks, rank, line)));
  return bare ? std::string(line) : fmt::format("[{}] {}", rank, line);
}

std::optional<ToldStep> take_last_step(std::string& line) {
  const size_t start = line.find(kLastStepMarker);
  if (start == std::string::npos) return std::nullopt;
  auto numbers = std::string_view(line).substr(start + sizeof kLastStepMarker - 1);
  constexpr std::string_view kOf = " of ";
  const size_t of = numbers.find(kOf);
  const auto planned =
      of == std::string_view::npos ? std::nullopt : parse_int64(numbers.substr(of + kOf.size()));
  numbers = numbers.substr(0, of);
  const size_t blank = std::min(numbers.find(' '), numbers.size());
  const auto step = parse_int64(numbers.substr(0, blank));
  const auto age = parse_int64(numbers.substr(std::min(blank + 1, numbers.size())));
  line.erase(start);
  if (!step) return std::nullopt;
  return ToldStep{*step, std::chrono::milliseconds(age.value_or(0)), planned};
}

std::optional<std::chrono::milliseconds> take_save_time(std::string& line) {
  const size_t start = line.find(detail::kSaveTookMarker);
  if (start == std::string::npos) return std::nullopt;
  const auto took = parse_int64(std::string_view(line).substr(start + sizeof detail::kSaveTookMarker - 1));
  line.erase(start);
  return std::chrono::milliseconds(std::max<std::int64_t>(took.value_or(0), 0));
}

std::string take_going_host(std::string& line) {
  const size_t start = line.find(kHostGoesMarker);
  if (start == std::string::npos) return "";
  std::string host = line.substr(start + sizeof kHostGoesMarker - 1);
  line.erase(start);
  return host;
}

bool take_readiness(std::string& line) {
  const size_t start = line.find(kTakesRequestsMarker);
  if (start != std::string::npos) line.erase(start);
  return start != std::string::npos;
}

std::optional<GoneRank> find_gone_rank(std::string_view line) {
  constexpr std::string_view kRank = " rank ", kOn = " on ", kGone = " is gone (last step ";
  const size_t gone = line.find(kGone), bracket = line.find(']');
  if (gone == std::string_view::npos || line[0] != '[' || bracket > gone) return std::nullopt;
  const size_t start = line.rfind(kRank, gone), on = line.rfind(kOn, gone);
  if (start == std::string_view::npos || on == std::string_view::npos || on < start) return std::nullopt;
  const auto rank = parse_int64(line.substr(start + kRank.size(), on - start - kRank.size()));
  if (!rank) return std::nullopt;
  return GoneRank{std::string(line.substr(1, bracket - 1)), static_cast<int>(*rank),
                  std::string(line.substr(on + kOn.size(), gone - on - kOn.size()))};
}

OutputRouter::OutputRouter(const Options& options, std::optional<LineMarks> marks, OutputSink& out,
                           OutputSink& err, OutputFiles* files)
    : prefix_(options.prefix),
      ranks_(options.ranks),
      marks_(marks),
      by_hydra_(options.launcher == Launcher::hydra),
      quiet_(options.quiet),
      stopped_code_(options.stopped_exit_code),
      out_(out),
      err_(err),
      banner_(options.quiet, options.stopped_exit_code),
      files_(files),
      splitters_{TagSplitter(marks == LineMarks::tags_and_blank),
                 TagSplitter(marks == LineMarks::tags_and_blank)} {}

void OutputRouter::note(std::string_view line) {
  if (files_) files_->add(line);
}

// What a longer line leaves behind it, which was to be rewritten, is cleared.
void OutputRouter::add(Stream stream, std::string line, char end) {
  if (end == '\n') note(line);
  OutputSink& to = sink(stream);
  if (to.is_terminal() && std::exchange(line_open_, end == '\r')) line.insert(0, "\033[K");
  to.add_line(line, end);
}

void OutputRouter::add_launchers(const std::vector<std::string>& lines) {
  for (const std::string& line : lines) add(Stream::err, line);
  launcher_has_spoken_ = launcher_has_spoken_ || !lines.empty();
}

void OutputRouter::keep(int rank, std::string_view line) {
  if (!files_ || rank == kMpirunItself) return;
  files_->add_of_rank(rank, line);
  if (const std::string error = files_->take_error(); !error.empty()) say(error);
}

void OutputRouter::look_at_words(std::string_view line) {
  ranks_disagree_ = ranks_disagree_ || says_ranks_disagree(line);
  const auto gone = find_gone_rank(line);
  if (!gone) return;
  const auto [first, is_new] = gone_ranks_.try_emplace(gone->reporter, *gone);
  const bool is_another = !is_new && first->second.host == gone->host && first->second.rank != gone->rank;
  if (is_another && silent_host_.empty()) silent_host_ = gone->host;
}

// hydra writes a blank line before its page, among those of the ranks where nothing marks them: such a line
// waits for the next one. True if this one waits.
bool OutputRouter::holds_blank(Stream stream, std::string_view line) {
  int& held = blank_lines_[static_cast<size_t>(stream)];
  if (line.empty()) return ++held, true;
  if (hydra_.takes(line)) return held = 0, true;
  for (; held > 0; --held) add(stream, "");
  return false;
}

// True if the rank has told kolorun something in this line.
bool OutputRouter::take_marks(std::string& line) {
  if (take_readiness(line)) return ++ready_ranks_ > 0;
  if (std::string host = take_going_host(line); !host.empty()) {
    if (std::find(going_hosts_.begin(), going_hosts_.end(), host) == going_hosts_.end())
      going_hosts_.push_back(std::move(host));
    return true;
  }
  if (const auto took = take_save_time(line)) {
    last_save_ = took;
    return true;
  }
  const auto told = take_last_step(line);
  if (told && told->of) planned_steps_ = told->of;
  if (told && (!last_step_ || told->step > *last_step_))
    last_step_ = told->step, last_step_at_ = std::chrono::steady_clock::now() - told->age;
  return told.has_value();
}

void OutputRouter::take_line(int rank, Stream stream, const LineCutter::Piece& piece, LineCutter* cutter) {
  if (piece.is_rest) {
    // Of a line of ssh's that the banner's reader has kept back.
    if (rank == kMpirunItself && stream == Stream::err && banner_.holds_words_of_ssh()) return;
    line_open_ = false;
    keep(rank, piece.line);
    note(with_prefix(prefix_, ranks_, rank, piece.line));
    return sink(stream).add_line("", piece.end);
  }
  std::string line(piece.line);
  if (rank == kMpirunItself && is_count_of_failed_starts(line)) return;
  if (rank == kMpirunItself && by_hydra_ && holds_blank(stream, line)) return;
  if (stream == Stream::err) {
    if (take_marks(line)) {
      // The rank may have been in the middle of a line, as of a progress bar.
      if (cutter) return cutter->continue_with(std::move(line));
      if (line.empty()) return;
    }
    look_at_words(line);
    if (rank == kMpirunItself) return add_launchers(banner_.read(line));
  }
  if (piece.end == '\n') keep(rank, line);
  add(stream, with_prefix(prefix_, ranks_, rank, line), piece.end);
}

void OutputRouter::from_rank(int rank, Stream stream, std::string_view bytes) {
  LineCutter& cutter = cutters_[{rank, stream}];
  cutter.feed(bytes, [&](const LineCutter::Piece& piece) { take_line(rank, stream, piece, &cutter); });
}

void OutputRouter::take_labelled(Stream stream, const LineCutter::Piece& piece) {
  const auto [rank, start] = find_label(piece.line);
  const std::string_view text = piece.line.substr(start);
  const bool is_ranks = rank >= 0 && !text.starts_with("slurmstepd-");  // Slurm's notes come as a rank's
  take_line(is_ranks ? rank : kMpirunItself, stream, {text, piece.end, piece.is_rest});
}

void OutputRouter::from_mpirun(Stream stream, std::string_view bytes) {
  if (!marks_) return from_rank(kMpirunItself, stream, bytes);
  if (marks_ == LineMarks::labels)
    return cutters_[{kMpirunItself, stream}].feed(
        bytes, [&](const LineCutter::Piece& piece) { take_labelled(stream, piece); });
  splitters_[static_cast<size_t>(stream)].feed(
      bytes, [&](int rank, std::string_view piece) { from_rank(rank, stream, piece); });
}

void OutputRouter::finish() {
  for (const Stream stream : {Stream::out, Stream::err})
    splitters_[static_cast<size_t>(stream)].finish(
        [&](int rank, std::string_view piece) { from_rank(rank, stream, piece); });
  for (auto& [source, cutter] : cutters_) {
    const auto [rank, stream] = source;
    cutter.finish([&, rank = rank, stream = stream](const LineCutter::Piece& piece) {
      if (marks_ == LineMarks::labels) take_labelled(stream, piece);
      else take_line(rank, stream, piece);
    });
  }
  for (const Stream stream : {Stream::out, Stream::err})
    for (int& held = blank_lines_[static_cast<size_t>(stream)]; held > 0 && !marks_; --held) add(stream, "");
  add_launchers(banner_.finish());
  if (by_hydra_) take_words_of_hydra();
}

// Which rank was killed the others have told, where hydra does not know.
void OutputRouter::take_words_of_hydra() {
  if (!quiet_) add_launchers(hydra_.page());
  if (auto dead = hydra_.dead_rank()) {
    for (const auto& [reporter, gone] : gone_ranks_)
      if (dead->rank < 0 && is_same_host(gone.host, dead->host)) dead->rank = gone.rank;
    banner_.take(*dead);
  } else if (const auto failed = hydra_.failed_rank(stopped_code_)) {
    banner_.take(*failed);
  }
}

}  // namespace kolo::launcher
