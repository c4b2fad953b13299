#include <kolo/launcher/banner.h>

#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <initializer_list>
#include <iterator>
#include <utility>

#include <kolo/core/base/text.h>
#include <kolo/launcher/host_lists.h>

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

// Open MPI 4.1: help-orterun.txt, help-errmgr-base.txt, help-mpi-api.txt.
bool says_job_is_failing(std::string_view line) {
  return contains_any(line,
                      {"Primary job  terminated normally, but", "mpirun noticed that process rank",
                       "mpirun detected that one or more processes exited", "MPI_ABORT was invoked on rank",
                       "lost communication with a remote daemon", "mpirun has exited due to process rank"});
}

// Of a rank whose peer is gone; mpirun itself says more.
bool says_peer_is_gone(std::string_view line) {
  return contains(line, "An MPI communication peer process has unexpectedly disconnected");
}

// mpirun takes the end of an ssh for a daemon that did not start, however long it ran.
bool says_daemon_did_not_start(std::string_view line) {
  return contains(line, "ORTE was unable to reliably start one or more daemons");
}

// What follows of that for the daemons that did start, and of a signal while they are being started.
bool says_daemons_cannot_talk(std::string_view line) {
  return contains(line, "ORTE does not know how to route a message to the specified daemon");
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

// Of the lines on an error of MPI's that ends a rank: "[vm:97] *** An error occurred in MPI_Send".
bool is_of_mpi_error(std::string_view line) {
  const size_t stars = line.find("] *** ");
  return starts_with(line, "[") && stars != std::string_view::npos &&
         contains_any(line.substr(stars),
                      {"An error occurred in ", "reported by process [", "on communicator ", "on a NULL ",
                       "on win ", "on file ", "MPI_ERR", "   and potentially your MPI job"});
}

// "[vm:77] [[29379,0],0] ACTIVATE PROC [[29379,1],1] STATE RUNNING AT ../odls_base_default_fns.c:1056"
bool is_of_state(std::string_view line) {
  return starts_with(line, "[") && contains(line, "] ACTIVATE ") && contains(line, " STATE ") &&
         contains(line, " AT ");
}

bool is_noise(std::string_view line) {
  return counts_notes(line) || is_of_mpi_error(line) ||
         contains_any(line, {"mpirun: Forwarding signal", "mpirun: killing job",
                             "mpirun: abort is already in progress",
                             // ssh was quicker than the parent, which is of no harm
                             "plm:rsh: Warning: setpgid("});
}

// The host to which ssh has lost its connection; "" if the line is not about that.
std::string host_lost_by_ssh(std::string_view line) {
  if (starts_with(line, "Connection to ") && contains(line, " closed by remote host"))
    return word_after(line, "Connection to ");
  if (starts_with(line, "Timeout, server ") && contains(line, " not responding"))
    return word_after(line, "Timeout, server ");
  return "";
}

// The host that Slurm says is down, as in "srun: error: Node failure on node3"; "" if the line is not about
// that.
std::string host_lost_by_slurm(std::string_view line) {
  std::string host = word_after(line, "srun: error: Node failure on ");
  if (!host.empty() && host.back() == '.') host.pop_back();
  return host;
}

// Open MPI 4.1: help-orterun.txt.
bool says_program_is_missing(std::string_view line) {
  return contains_any(line, {"unable to launch the specified application as it could not access",
                             "unable to find the specified executable file"});
}

bool says_folder_is_missing(std::string_view line) {
  return contains(line, "change to the specified working directory:");
}

// Open MPI 4.1: help-orte-rmaps-base.txt.
bool says_slots_are_missing(std::string_view line) {
  return contains_any(line, {"There are not enough slots available in the system to satisfy the",
                             "All nodes which are allocated for this job are already filled."});
}

// The second line of a block whose rest decides whether it is printed.
bool may_say_why_nothing_started(std::string_view line) {
  return contains(line, "unable to launch the specified application as it could not") ||
         says_program_is_missing(line) || says_slots_are_missing(line) || says_daemons_cannot_talk(line);
}

// What stands behind `words` and a blank in the line that begins with them; "" if none does.
std::string rest_of_line(const std::vector<std::string>& lines, std::string_view words) {
  for (const std::string& line : lines) {
    const size_t rest = line.find_first_not_of(' ', words.size());
    if (starts_with(line, words) && rest != std::string::npos) return line.substr(rest);
  }
  return "";
}

// What OpenSSH says where it comes to no session. Only its words on names and addresses start with "ssh: ".
bool is_of_ssh(std::string_view line) {
  constexpr std::string_view kStarts[] = {"ssh: ",
                                          "Host key verification failed",
                                          "kex_exchange_identification: ",
                                          "ssh_exchange_identification: ",
                                          "ssh_dispatch_run_fatal: ",
                                          "banner exchange: ",
                                          "Connection timed out during banner exchange",
                                          "Connection closed by ",
                                          "Connection reset by ",
                                          "Unable to negotiate with ",
                                          "Received disconnect from ",
                                          "Disconnected from ",
                                          "Too many authentication failures"};
  return std::any_of(std::begin(kStarts), std::end(kStarts),
                     [&](std::string_view start) { return starts_with(line, start); }) ||
         (starts_with(line, "Connection to ") && contains(line, " timed out")) ||
         contains_any(line, {": Permission denied (", " host key is known for "});
}

// What OpenSSH says before it tries on: the reason, if there is one, is in a later line.
bool is_warning_of_ssh(std::string_view line) {
  constexpr std::string_view kStarts[] = {
      "Permission denied, please try again", "Load key \"",
      "Could not create directory '",        "Failed to add the host to the list of known hosts",
      "Warning: Permanently added '",        "Warning: Identity file "};
  return std::any_of(std::begin(kStarts), std::end(kStarts),
                     [&](std::string_view start) { return starts_with(line, start); });
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

// srun has been told to end, and from here on ends ranks by SIGKILL.
bool says_srun_aborts(std::string_view line) { return contains(line, "srun: Job step aborted:"); }

// A rank has failed. The others now get SIGTERM, and SIGKILL after the site's KillWait.
bool says_srun_ends_the_others(std::string_view line) {
  return starts_with(line, "srun: ") && contains(line, "_step_signal: Terminating ");
}

// Less than a site's KillWait, and more than it takes until a rank that was killed before is told, too.
constexpr std::chrono::milliseconds kSrunWaits{1500};

// Of srun, which has found no slurmd on a host.
bool is_failed_launch(std::string_view line) {
  return starts_with(line, "srun: error: Task launch for ") && contains(line, " failed on node ");
}

// srun's notes on how it ends the others.
bool is_noise_of_srun(std::string_view line) {
  return contains_any(line, {"srun: Force Terminated ", "_step_signal: Terminating ",
                             "srun: forcing job termination", "srun: error: Node failure on "}) ||
         says_srun_aborts(line) || (contains(line, "slurmstepd-") && contains(line, " CANCELLED AT "));
}

constexpr const char* kWithoutFinalize =
    "ended without MPI_Finalize, which an exit before the end of the program leaves out";

// What mpirun writes when it ends itself because of that.
bool says_mpirun_ends_itself(std::string_view line) {
  return contains(line, "An internal error has occurred in ORTE");
}

}  // namespace

bool is_count_of_failed_starts(std::string_view line) {
  const size_t digits = line.find_first_not_of("0123456789");
  if (digits == 0 || digits == std::string_view::npos) return false;
  line.remove_prefix(digits);
  return line == " total process failed to start" || line == " total processes failed to start";
}

void BannerReader::look_at_task(const EndedTask& task, bool is_stopped) {
  failing_ = failing_ || !is_stopped;
  constexpr std::string_view kExited = "Exited with exit code ";
  if (starts_with(task.what, kExited)) {
    const auto code = parse_int64(task.what.substr(kExited.size()));
    highest_code_ = std::max(highest_code_, static_cast<int>(code.value_or(0)));
    if (!failed_rank_ && !is_stopped && code)
      failed_rank_ = {.rank = task.rank, .host = task.host, .code = static_cast<int>(*code), .is_task = true};
    return;
  }
  // Those are srun's own doing.
  if (starts_with(task.what, "Terminated")) return;
  auto& dead = srun_kills_others() ? ended_with_others_ : dead_rank_;
  if (!dead) dead = DeadRank{task.rank, task.host, signal_named(task.what)};
}

constexpr const char* kBeforeInit =
    "ended with exit code 0 before it came to MPI_Init, where the others wait for it";

// mpirun takes such a rank for done, and the others would wait for ever.
void BannerReader::look_for_missing_rank(int rank, std::string_view line) {
  if (contains(line, " STATE SYNC REGISTERED AT ")) registered_.insert(rank);
  else if (contains(line, " STATE NORMALLY TERMINATED AT ") && !registered_.contains(rank) &&
           !left_before_it_)
    left_before_it_ = rank;
  if (!left_before_it_ || registered_.empty() || first_end_) return;
  first_end_ = {*left_before_it_, false, kBeforeInit};
  failing_ = true;
}

void BannerReader::look_at_state(std::string_view line) {
  const std::string name = word_after(line, " ACTIVATE PROC ");  // "[[29379,1],1]"
  const std::string_view rank = std::string_view(name).substr(name.rfind(',') + 1);
  const auto number = parse_int64(rank.substr(0, rank.find(']')));
  if (number && tells_all_states_) look_for_missing_rank(static_cast<int>(*number), line);
  const bool by_signal = contains(line, " STATE ABORTED BY SIGNAL AT "),
             without_finalize = contains(line, " STATE TERMINATED WITHOUT SYNC AT ");
  if (first_end_ ||
      !(by_signal || without_finalize ||
        contains_any(line, {" STATE EXITED WITH NON-ZERO STATUS AT ", " STATE CALLED ABORT AT "})))
    return;
  if (number) first_end_ = {static_cast<int>(*number), by_signal, without_finalize ? kWithoutFinalize : ""};
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
  const bool has_exited = contains(line, "Exit code:");
  if (has_exited) code = std::string(line.substr(line.find_last_of(' ') + 1));
  const auto number = parse_int64(code);
  if (!number || !named_rank_) return;
  has_stopped_ = has_stopped_ || (has_exited && *number != 0 && *number == stopped_code_);
  if (!failed_rank_ && *number != 0 && *number != stopped_code_)
    failed_rank_ = {*named_rank_, "", static_cast<int>(*number)};
  named_rank_.reset();
}

// "[node2:97] *** An error occurred in MPI_Send", "[node2:97] *** reported by process [1096286209,1]" and
// "[node2:97] *** MPI_ERR_RANK: invalid rank".
void BannerReader::look_for_mpi_errors(std::string_view line) {
  if (!is_of_mpi_error(line)) return;
  failing_ = true;
  const std::string_view text = line.substr(line.find("] *** ") + 6);
  if (const std::string function = word_after(text, "An error occurred in "); !function.empty())
    mpi_error_ = {.rank = -1, .host = std::string(line.substr(1, line.find(':') - 1)), .how = function};
  if (const std::string process = word_after(text, "reported by process ["); !process.empty())
    mpi_error_.rank = static_cast<int>(
        parse_int64(process.substr(process.find(',') + 1, process.find(']') - process.find(',') - 1))
            .value_or(-1));
  if (!starts_with(text, "MPI_ERR_") || mpi_error_.rank < 0 || failed_rank_) return;
  failed_rank_ = mpi_error_;
  failed_rank_->how = "was ended by an error in " + mpi_error_.how + ": " + std::string(text);
}

// "mpirun has exited due to process rank 1 with PID 0 on" and then "node vm exiting improperly. There are …".
void BannerReader::look_for_improper_ends(std::string_view line) {
  if (const auto rank = parse_int64(word_after(line, "mpirun has exited due to process rank ")))
    improper_rank_ = static_cast<int>(*rank);
  if (!improper_rank_ || failed_rank_ || !contains(line, " exiting improperly")) return;
  failed_rank_ = {.rank = *improper_rank_, .host = word_after(line, "node "), .how = kWithoutFinalize};
}

// "srun: error: Task launch for StepId=43.2 failed on node node3: Communication connection failure"
void BannerReader::look_for_failed_launches(std::string_view line) {
  if (!is_failed_launch(line)) return;
  failing_ = true;
  if (unreachable_.empty()) unreachable_ = line.substr(line.find("Task launch for "));
}

bool BannerReader::srun_kills_others() const {
  return srun_aborts_ || (srun_ends_others_ && now_() - *srun_ends_others_ >= kSrunWaits);
}

const std::optional<BannerReader::DeadRank>& BannerReader::dead_rank() const {
  return dead_rank_ || failed_rank_ ? dead_rank_ : ended_with_others_;
}

void BannerReader::look_for_deaths(std::string_view line) {
  failing_ = failing_ || says_job_is_failing(line);
  look_for_exit_codes(line);
  look_for_mpi_errors(line);
  look_for_improper_ends(line);
  look_for_failed_launches(line);
  if (!dead_rank_ && contains(line, "exited on signal")) {
    const auto rank = parse_int64(word_after(line, "noticed that process rank "));
    const std::string host = word_after(line, " on node ");
    const auto signal = parse_int64(word_after(line, " exited on signal ")).value_or(0);
    if (rank && !host.empty()) dead_rank_ = DeadRank{static_cast<int>(*rank), host, static_cast<int>(signal)};
  }
  srun_aborts_ = srun_aborts_ || says_srun_aborts(line);
  if (!srun_ends_others_ && says_srun_ends_the_others(line)) srun_ends_others_ = now_();
  if (const auto task = ended_task_of_srun(line)) look_at_task(*task, is_of_stopped_rank(line));
  if (!lost_host_.empty() || lost_daemon_) return;
  lost_daemon_ = daemon_lost_in_sending(line);
  lost_host_ = contains(line, "Remote daemon:") ? word_after(line, " on node ") : host_lost_by_ssh(line);
  if (lost_host_.empty()) lost_host_ = host_lost_by_slurm(line);
  failing_ = failing_ || !lost_host_.empty() || lost_daemon_;
}

std::vector<std::string> BannerReader::read(std::string_view line) {
  if (takes_out_states_ && is_of_state(line)) return look_at_state(line), std::vector<std::string>{};
  look_for_deaths(line);
  if (!in_block_ && (is_of_ssh(line) || is_warning_of_ssh(line) || (holds_words_of_ssh() && line.empty()))) {
    ssh_lines_.emplace_back(line);
    return {};
  }
  if (says_note_is_lost(line) || is_failed_launch(line)) return {};
  if (is_of_stopped_rank(line) && !in_block_) return {};
  if ((missing_ || !unreachable_.empty()) && counts_notes(line)) return {};
  if (!in_block_ && !is_dashes(line))
    return quiet_ && (is_noise(line) || is_noise_of_srun(line) || ended_task_of_srun(line))
               ? std::vector<std::string>{}
               : std::vector{std::string(line)};
  block_.emplace_back(line);
  const bool may_go = !quiet_ && stopped_code_ == 0 && !holds_words_of_ssh();
  if (in_block_ && may_go && block_.size() == 2 && !may_say_why_nothing_started(line)) return end_block();
  if (!in_block_) {
    in_block_ = true;
    return {};
  }
  return is_dashes(line) ? end_block() : std::vector<std::string>{};
}

std::vector<std::string> BannerReader::finish() {
  std::vector<std::string> lines = end_block();
  if (unreachable_.empty()) lines.insert(lines.begin(), ssh_lines_.begin(), ssh_lines_.end());
  ssh_lines_.clear();
  return lines;
}

void BannerReader::take_words_of_ssh() {
  const bool has_reason = std::any_of(ssh_lines_.begin(), ssh_lines_.end(), is_of_ssh);
  for (std::string line : ssh_lines_) {
    if (has_reason && is_warning_of_ssh(line)) continue;
    if (starts_with(line, "ssh: ")) line.erase(0, 5);
    if (!line.empty() && line.back() == '.') line.pop_back();
    if (!contains(unreachable_, line)) unreachable_ += (unreachable_.empty() ? "" : ", ") + line;
  }
}

std::vector<std::string> BannerReader::end_block() {
  in_block_ = false;
  std::vector<std::string> block = std::exchange(block_, {});
  const auto has = [&](const auto& says) { return std::any_of(block.begin(), block.end(), says); };
  if (has(says_program_is_missing) && !rest_of_line(block, "Executable:").empty()) {
    missing_ = {rest_of_line(block, "Executable:"), rest_of_line(block, "Node:")};
    return {};
  }
  if (has(says_folder_is_missing) && !rest_of_line(block, "Working directory:").empty()) {
    missing_ = {rest_of_line(block, "Working directory:"), rest_of_line(block, "Node:"), true};
    return {};
  }
  if (has(says_slots_are_missing)) return lacks_slots_ = true, std::vector<std::string>{};
  if (has(says_daemons_cannot_talk)) return lacks_daemons_ = true, std::vector<std::string>{};
  // Of a host that is lost later ssh may use the same words, and mpirun the same block.
  const bool was_running = !lost_host_.empty() || lost_daemon_ || dead_rank_ || failed_rank_;
  if (holds_words_of_ssh() && !was_running && has(says_daemon_did_not_start))
    return take_words_of_ssh(), std::vector<std::string>{};
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
