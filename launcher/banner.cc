#include <kolo/launcher/banner.h>

#include <signal.h>

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <utility>

#include <kolo/core/base/text.h>

namespace kolo::launcher {

// "srun: error: node4: task 6: Killed", or "tasks 6-7: Killed": the rank, its host and what srun says of it.
struct BannerReader::EndedTask {
  int rank = 0;
  std::string host;
  std::string_view what;
};

namespace {

bool contains(std::string_view text, std::string_view words) {
  return text.find(words) != std::string_view::npos;
}

bool starts_with(std::string_view text, std::string_view start) {
  return text.substr(0, start.size()) == start;
}

bool contains_any(std::string_view text, std::initializer_list<std::string_view> phrases) {
  return std::any_of(phrases.begin(), phrases.end(),
                     [&](std::string_view words) { return contains(text, words); });
}

bool is_dashes(std::string_view line) {
  return line.size() >= 60 && line.find_first_not_of('-') == std::string_view::npos;
}

// The word after `words` in `line`, up to a space; "" if they are not there.
std::string word_after(std::string_view line, std::string_view words) {
  const size_t found = line.find(words);
  if (found == std::string_view::npos) return "";
  line.remove_prefix(found + words.size());
  return std::string(line.substr(0, line.find(' ')));
}

// Open MPI 4.1: help-orterun.txt, help-errmgr-base.txt, help-mpi-api.txt.
bool says_job_is_failing(std::string_view line) {
  return contains_any(line, {"Primary job  terminated normally, but", "mpirun noticed that process rank",
                             "mpirun detected that one or more processes exited",
                             "MPI_ABORT was invoked on rank", "lost communication with a remote daemon"});
}

// Of a rank whose peer is gone; mpirun itself says more.
bool says_peer_is_gone(std::string_view line) {
  return contains(line, "An MPI communication peer process has unexpectedly disconnected");
}

// mpirun takes the end of an ssh for a daemon that did not start, however long it ran.
bool says_daemon_did_not_start(std::string_view line) {
  return contains(line, "ORTE was unable to reliably start one or more daemons");
}

// Of a note that another process had as well: the first one's is a block, and says whatever there is to say.
bool counts_notes(std::string_view line) {
  return contains_any(line, {"more process has sent help message", "more processes have sent help message",
                             "Set MCA parameter \"orte_base_help_aggregate\""});
}

// mpirun has lost a note that a rank sent while it was ended: "[vm:7] [[9,0],0] ORTE_ERROR_LOG: Out of
// resource in file ../orte/util/show_help.c at line 501". In other files the same words say why a daemon did
// not start.
bool says_note_is_lost(std::string_view line) {
  return contains(line, "] ORTE_ERROR_LOG: ") && contains(line, "util/show_help.c at line ");
}

bool is_noise(std::string_view line) {
  return counts_notes(line) || says_note_is_lost(line) ||
         contains_any(line, {"mpirun: Forwarding signal", "mpirun: killing job",
                             "mpirun: abort is already in progress"});
}

// The host to which ssh has lost its connection; "" if the line is not about that.
std::string host_lost_by_ssh(std::string_view line) {
  if (starts_with(line, "Connection to ") && contains(line, " closed by remote host"))
    return word_after(line, "Connection to ");
  if (starts_with(line, "Timeout, server ") && contains(line, " not responding"))
    return word_after(line, "Timeout, server ");
  return "";
}

// Open MPI 4.1: help-orterun.txt.
bool says_program_is_missing(std::string_view line) {
  return contains_any(line, {"unable to launch the specified application as it could not access",
                             "unable to find the specified executable file"});
}

// What stands behind `words` and a blank in the line that begins with them; "" if none does.
std::string rest_of_line(const std::vector<std::string>& lines, std::string_view words) {
  for (const std::string& line : lines)
    if (starts_with(line, words) && line.size() > words.size() + 1) return line.substr(words.size() + 1);
  return "";
}

// "ssh: Could not resolve hostname a: …", "ssh: connect to host a port 22: …"; "" for another line.
std::string reason_of_ssh(std::string_view line) {
  constexpr std::string_view kStart = "ssh: ";
  return starts_with(line, kStart) ? std::string(line.substr(kStart.size())) : "";
}

// "[node1:37] [[49,0],0]-[[49,0],2] mca_oob_tcp_peer_send_handler: unable to send message …": mpirun itself,
// which is daemon 0, has found the connection broken in which it wanted to write.
std::optional<int> daemon_lost_in_sending(std::string_view line) {
  const size_t words = line.find("] mca_oob_tcp_peer_send_handler: unable to send message");
  if (words == std::string_view::npos || !contains(line.substr(0, words), ",0],0]-[[")) return std::nullopt;
  const auto daemon = parse_int64(line.substr(0, words).substr(line.rfind(',', words) + 1));
  return daemon ? std::optional(static_cast<int>(*daemon)) : std::nullopt;
}

std::optional<BannerReader::EndedTask> ended_task_of_srun(std::string_view line) {
  constexpr std::string_view kStart = "srun: error: ";
  if (!starts_with(line, kStart)) return std::nullopt;
  line.remove_prefix(kStart.size());
  const size_t colon = line.find(": task");
  if (colon == std::string_view::npos) return std::nullopt;
  const std::string host(line.substr(0, colon));
  line.remove_prefix(line.find(' ', colon + 2) + 1);
  const size_t digits = line.find_first_not_of("0123456789");
  const size_t what = line.find(": ");
  const auto rank = parse_int64(line.substr(0, digits));
  if (!rank || what == std::string_view::npos) return std::nullopt;
  return BannerReader::EndedTask{static_cast<int>(*rank), host, line.substr(what + 2)};
}

// As "Killed" is 9; 0 for a text that names none.
int signal_named(std::string_view what) {
  for (const int number : {SIGKILL, SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGXCPU, SIGINT, SIGHUP})
    if (starts_with(what, sigdescr_np(number))) return number;
  return 0;
}

// From here on srun ends ranks itself, by SIGKILL in the end.
bool says_srun_ends_the_others(std::string_view line) { return contains(line, "srun: Job step aborted:"); }

// srun's notes on how it ends the others.
bool is_noise_of_srun(std::string_view line) {
  return contains_any(line, {"srun: Force Terminated ", "_step_signal: Terminating "}) ||
         says_srun_ends_the_others(line) ||
         (contains(line, "slurmstepd-") && contains(line, " CANCELLED AT "));
}

// What mpirun writes when it ends itself because of that.
bool says_mpirun_ends_itself(std::string_view line) {
  return contains(line, "An internal error has occurred in ORTE");
}

}  // namespace

void BannerReader::look_at_task(const EndedTask& task, bool is_stopped) {
  failing_ = failing_ || !is_stopped;
  constexpr std::string_view kExited = "Exited with exit code ";
  if (starts_with(task.what, kExited)) {
    const auto code = parse_int64(task.what.substr(kExited.size()));
    if (!failed_rank_ && !is_stopped && code) failed_rank_ = {task.rank, task.host, static_cast<int>(*code)};
    return;
  }
  // Those are srun's own doing.
  if (starts_with(task.what, "Terminated")) return;
  auto& dead = srun_ends_others_ ? ended_with_others_ : dead_rank_;
  if (!dead) dead = DeadRank{task.rank, task.host, signal_named(task.what)};
}

// "Process name: [[3035,1],1]" and then "Exit code:    3"; or "MPI_ABORT was invoked on rank 1 in
// communicator …" and then "with errorcode 3.".
void BannerReader::look_for_exit_codes(std::string_view line) {
  if (const size_t name = line.find("Process name: [["); name != std::string_view::npos) {
    const std::string_view rank = line.substr(line.rfind(',') + 1);
    if (const auto number = parse_int64(rank.substr(0, rank.find(']'))))
      named_rank_ = static_cast<int>(*number);
  }
  if (const auto number = parse_int64(word_after(line, "MPI_ABORT was invoked on rank ")))
    named_rank_ = static_cast<int>(*number);
  std::string code = word_after(line, "with errorcode ");
  if (!code.empty() && code.back() == '.') code.pop_back();
  if (const size_t found = line.find("Exit code:"); found != std::string_view::npos)
    code = std::string(line.substr(line.find_last_of(' ') + 1));
  const auto number = parse_int64(code);
  if (!number || !named_rank_) return;
  if (!failed_rank_ && *number != 0 && *number != stopped_code_)
    failed_rank_ = {*named_rank_, "", static_cast<int>(*number)};
  named_rank_.reset();
}

const std::optional<BannerReader::DeadRank>& BannerReader::dead_rank() const {
  return dead_rank_ || failed_rank_ ? dead_rank_ : ended_with_others_;
}

void BannerReader::look_for_deaths(std::string_view line) {
  failing_ = failing_ || says_job_is_failing(line);
  look_for_exit_codes(line);
  if (!dead_rank_ && contains(line, "exited on signal")) {
    const auto rank = parse_int64(word_after(line, "noticed that process rank "));
    const std::string host = word_after(line, " on node ");
    if (rank && !host.empty()) dead_rank_ = DeadRank{static_cast<int>(*rank), host};
  }
  srun_ends_others_ = srun_ends_others_ || says_srun_ends_the_others(line);
  if (const auto task = ended_task_of_srun(line)) look_at_task(*task, is_of_stopped_rank(line));
  if (!lost_host_.empty() || lost_daemon_) return;
  lost_daemon_ = daemon_lost_in_sending(line);
  lost_host_ = contains(line, "Remote daemon:") ? word_after(line, " on node ") : host_lost_by_ssh(line);
  failing_ = failing_ || !lost_host_.empty() || lost_daemon_;
}

std::vector<std::string> BannerReader::read(std::string_view line) {
  look_for_deaths(line);
  if (const std::string reason = reason_of_ssh(line); !reason.empty() && !in_block_) {
    ssh_reason_ += (ssh_reason_.empty() ? "" : ", ") + reason;
    return {};
  }
  const bool is_unreachable = !ssh_reason_.empty();
  if (is_unreachable && !in_block_ && line.empty()) return {};
  if (is_of_stopped_rank(line) && !in_block_) return {};
  if (missing_ && contains(line, " failed to start")) return {};
  if (!in_block_ && !is_dashes(line))
    return quiet_ && (is_noise(line) || is_noise_of_srun(line) || ended_task_of_srun(line))
               ? std::vector<std::string>{}
               : std::vector{std::string(line)};
  block_.emplace_back(line);
  const bool may_go = !quiet_ && stopped_code_ == 0 && !is_unreachable;
  if (in_block_ && may_go && block_.size() == 2 && !says_program_is_missing(line)) return finish();
  if (!in_block_) {
    in_block_ = true;
    return {};
  }
  return is_dashes(line) ? finish() : std::vector<std::string>{};
}

std::vector<std::string> BannerReader::finish() {
  in_block_ = false;
  std::vector<std::string> block = std::exchange(block_, {});
  if (std::any_of(block.begin(), block.end(), says_program_is_missing) &&
      !rest_of_line(block, "Executable:").empty()) {
    missing_ = {rest_of_line(block, "Executable:"), rest_of_line(block, "Node:")};
    return {};
  }
  if (!ssh_reason_.empty() && std::any_of(block.begin(), block.end(), says_daemon_did_not_start)) return {};
  const bool noise = std::any_of(block.begin(), block.end(), [&](const std::string& line) {
    if (is_of_stopped_rank(line)) return true;
    return quiet_ && (says_job_is_failing(line) || says_peer_is_gone(line) ||
                      (says_daemon_did_not_start(line) && !lost_host_.empty()) ||
                      (says_mpirun_ends_itself(line) && lost_daemon_));
  });
  if (noise) block.clear();
  return block;
}

// mpirun first says that a rank has ended with a code, and then in a second block with which.
bool BannerReader::is_of_stopped_rank(std::string_view line) const {
  if (stopped_code_ == 0) return false;
  const std::string code = std::to_string(stopped_code_);
  const auto ends_with = [&](std::string_view words) {
    const size_t found = line.find(words);
    if (found == std::string_view::npos) return false;
    std::string_view rest = line.substr(found + words.size());
    rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
    return rest == code;
  };
  return contains(line, "Primary job  terminated normally, but") || ends_with("Exit code:") ||
         ends_with("Exited with exit code");
}

}  // namespace kolo::launcher
