// mpirun's and srun's own words on stderr: what they say about dead ranks, and which of them -q leaves out.
#pragma once

#include <chrono>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace kolo::launcher {

/// The setting by which Open MPI 4's mpirun notes on stderr what state each rank enters, when it enters it.
inline constexpr const char* kStateNotes = "state_base_verbose";

/// "2 total processes failed to start", which mpirun prints on stdout beside its block on stderr that says
/// why.
bool is_count_of_failed_starts(std::string_view line);

class BannerReader {
 public:
  /// quiet: notes on how the job ended are dropped; what says why a job could not start is never dropped.
  /// stopped_code: notes on ranks that end with it are dropped always; 0: there is no such code.
  using Clock = std::chrono::steady_clock;
  explicit BannerReader(bool quiet, int stopped_code = 0, Clock::time_point (*now)() = &Clock::now)
      : quiet_(quiet), stopped_code_(stopped_code), now_(now) {}

  /// One line of mpirun's; returns the lines to print now. A block waits for the dashes that close it.
  std::vector<std::string> read(std::string_view line);
  /// What still waits.
  std::vector<std::string> finish();

  struct EndedTask;  // of srun
  struct DeadRank {
    int rank = 0;  // −1: not known
    std::string host;
    int signal = 0;  // 0: not known
  };
  /// The rank that mpirun or srun names as killed by a signal. None where srun has killed it since another
  /// one ended with an exit code.
  const std::optional<DeadRank>& dead_rank() const;
  /// True if that rank is only known to have been killed by srun, with all others.
  bool is_dead_with_others() const { return !dead_rank_ && !failed_rank_ && ended_with_others_; }
  struct FailedRank {
    int rank = 0;
    std::string host = {};  // "": mpirun does not say
    int code = 0;           // 0: mpirun's own exit code has to do
    std::string how = {};   // it ended, where that is not by an exit code alone: "ended without MPI_Finalize"
    bool is_task = false;   // srun has told, which numbers each component of a heterogeneous job from 0
  };
  /// What hydra's words have told of ranks, which another reader reads.
  void take(const DeadRank& dead) { dead_rank_ = dead; }
  void take(const FailedRank& failed) { failed_rank_ = failed; }
  /// The first rank that mpirun or srun says ended with an exit code, but for the code of a stop, by an MPI
  /// error or without MPI_Finalize.
  const std::optional<FailedRank>& failed_rank() const { return failed_rank_; }
  /// Whether mpirun says that the first rank to end by an exit code had that of a stop. Then all had left
  /// their work. mpirun kills those that take a second longer to end, and may return their code.
  bool has_stopped() const { return has_stopped_ && !failed_rank_ && !dead_rank_; }
  /// The highest exit code that srun has named of a rank, which becomes its own; 0 for none.
  int highest_code() const { return highest_code_; }
  struct FirstEnd {
    int rank = 0;
    bool by_signal = false;
    std::string how = {};  // as FailedRank's
  };
  /// The rank that mpirun's notes on states (kStateNotes) name first as failed. Its blocks say more, but of a
  /// rank that has failed mpirun sometimes prints no more than that there is one.
  const std::optional<FirstEnd>& first_end() const { return first_end_; }
  /// From now on such notes are taken out: nobody but kolorun has asked for them. tells_all: mpirun notes
  /// each state of each rank, as it does of its children alone. A rank that ends before it has come to
  /// MPI_Init then fails the job if another has come there.
  void take_out_states(bool tells_all) {
    takes_out_states_ = true;
    tells_all_states_ = tells_all;
  }
  /// What ssh or srun has said of hosts that it could not reach; "" for nothing. Neither those lines nor
  /// mpirun's blocks about them are printed. Until such a block has come, they wait for it or for the end.
  const std::string& unreachable() const { return unreachable_; }
  bool holds_words_of_ssh() const { return !ssh_lines_.empty(); }
  struct Missing {
    std::string path, host;
    bool is_folder = false;  // of --wdir
  };
  /// The program or folder that mpirun did not find on a host; its block about that is not printed.
  const std::optional<Missing>& missing() const { return missing_; }
  /// True if mpirun finds fewer slots than the job has ranks; its block about that is not printed.
  bool lacks_slots() const { return lacks_slots_; }
  /// True if mpirun had no daemon that it could hand a signal on to, as while it starts them; its block about
  /// that is not printed.
  bool lacks_daemons() const { return lacks_daemons_; }
  /// The host with which mpirun's daemon network, the ssh that started its daemon, or Slurm has lost contact;
  /// "" for none.
  const std::string& lost_host() const { return lost_host_; }
  /// Where mpirun names that host's daemon only by its number: they count from 1 through the hosts, in the
  /// job's order, that are not mpirun's own.
  std::optional<int> lost_daemon() const { return lost_daemon_; }
  /// True since the first word that the job is failing: mpirun is now expected to end by itself.
  bool failing() const { return failing_; }

 private:
  void look_for_deaths(std::string_view line);
  void look_at_task(const EndedTask& task, bool is_stopped);
  void look_at_state(std::string_view line);
  void look_for_missing_rank(int rank, std::string_view line);
  void look_for_exit_codes(std::string_view line);
  void look_for_mpi_errors(std::string_view line);
  void look_for_improper_ends(std::string_view line);
  void look_for_failed_launches(std::string_view line);
  std::vector<std::string> end_block();
  void take_words_of_ssh();
  bool is_of_stopped_rank(std::string_view line) const;
  bool srun_kills_others() const;

  bool quiet_;
  int stopped_code_;
  Clock::time_point (*now_)();
  bool in_block_ = false;
  std::vector<std::string> block_;
  std::optional<DeadRank> dead_rank_, ended_with_others_;
  std::optional<FailedRank> failed_rank_;
  int highest_code_ = 0;
  bool has_stopped_ = false;
  std::optional<FirstEnd> first_end_;
  bool takes_out_states_ = false, tells_all_states_ = false;
  std::set<int> registered_;           // ranks that have come to MPI_Init
  std::optional<int> left_before_it_;  // the first that ended, with 0, without having come there
  std::optional<int> named_rank_;      // by mpirun, in a line before that of its code
  bool srun_aborts_ = false;
  std::optional<Clock::time_point> srun_ends_others_;  // since then, by SIGTERM first
  FailedRank mpi_error_;                               // what the lines on it have told up to now
  std::optional<int> improper_rank_;                   // by mpirun, in a line before that of its host
  std::string lost_host_, unreachable_;
  std::vector<std::string> ssh_lines_;
  std::optional<Missing> missing_;
  bool lacks_slots_ = false;
  bool lacks_daemons_ = false;
  std::optional<int> lost_daemon_;
  bool failing_ = false;
};

}  // namespace kolo::launcher
