#include <kolo/launcher/job.h>

#include <fmt/core.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <utility>

#include <kolo/core/base/child_program.h>
#include <kolo/core/base/count_of.h>
#include <kolo/core/base/launcher.h>
#include <kolo/launcher/child.h>
#include <kolo/launcher/host_list.h>
#include <kolo/launcher/job_end.h>
#include <kolo/launcher/job_folders.h>
#include <kolo/launcher/output.h>
#include <kolo/launcher/rank_pipes.h>
#include <kolo/launcher/rank_requests.h>
#include <kolo/launcher/rank_starter.h>
#include <kolo/launcher/step_watch.h>

namespace kolo::launcher {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kEndWhereElastic{500};  // after a loss: no launcher is waited for
constexpr milliseconds kStopFilePeriod{1000};
constexpr size_t kMostPending = 1 << 20;  // bytes a slow reader may be behind before the ranks have to wait
constexpr size_t kMostAtEnd = 64 << 20;   // when all have ended: more than their pipes can hold

class Job {
 public:
  Job(const Options& options, const Surroundings& found, detail::StopTime& stop_time, SignalQueue& signals,
      OutputFiles* files, ElasticHosts* elastic);
  JobResult run();

 private:
  enum class Stage { running, stopping, ending, killing, ended };

  void wait_for_events();
  bool read_all(int fd, int rank, Stream stream);
  void read_outputs();
  void flush_sinks();
  void handle_signal(int number);
  void reap();
  void ask_to_stop(milliseconds grace);
  void ask_to_stop() { ask_to_stop(milliseconds(static_cast<std::int64_t>(options_.stop_grace_s * 1000))); }
  RankRequests::Effect effect_of_requests() const;
  void end_mpirun();
  void kill_everything();
  void end_for_another_start();
  void end_at_once();
  void handle_deadline();
  void handle_stop_time();
  void handle_stop_file();
  void handle_going_hosts();
  void handle_news_of_hosts();
  void tell_that_it_cannot_grow();
  void handle_end_of_step();
  void set_deadline(milliseconds from_now) { deadline_ = Clock::now() + from_now; }
  void tell_grace_is_over();

  const Options& options_;
  const RankStarter& starter_;
  ElasticHosts* const elastic_;
  detail::StopTime& stop_time_;
  SignalQueue& signals_;
  const bool here_;
  const bool tagged_;
  const std::string hostname_;
  std::optional<RankPipes> pipes_;
  std::optional<JobFolders> folders_;
  std::optional<HostList> host_list_;
  OutputSink out_{STDOUT_FILENO}, err_{STDERR_FILENO};
  OutputRouter router_;
  JobEnd end_;
  Child mpirun_;
  std::optional<StepWatch> step_watch_;
  bool outlives_step_ = false;  // srun has
  Stage stage_ = Stage::running;
  std::optional<Clock::time_point> deadline_;
  Clock::time_point next_look_ = {};  // for --stop-file
  bool loss_seen_ = false;            // of a host
  bool fails_to_stop_ = false;        // a rank or host was lost
  int stop_signals_ = 0;
  RankRequests requests_;
  milliseconds grace_{0};  // for ranks that were asked to stop
  const Clock::time_point start_ = Clock::now();
  bool asked_to_grow_ = false, cannot_grow_told_ = false;
  size_t going_hosts_ = 0;  // as far as they were looked at
  bool forced_ = false;     // ended without waiting for the ranks
  int exit_code_ = 0;
};

bool wants_prefix(const Options& options) {
  return options.prefix == Prefix::always || (options.prefix == Prefix::automatic && options.ranks > 1);
}

Job::Job(const Options& options, const Surroundings& found, detail::StopTime& stop_time, SignalQueue& signals,
         OutputFiles* files, ElasticHosts* elastic)
    : options_(options),
      starter_(starter_of(options.launcher)),
      elastic_(elastic),
      stop_time_(stop_time),
      signals_(signals),
      here_(starter_.has_ranks_as_children() && all_ranks_here(options, found)),
      tagged_(!here_ && (wants_prefix(options) || files != nullptr)),
      hostname_(found.hostname),
      router_(options, tagged_ ? std::optional(starter_.marks(found)) : std::nullopt, out_, err_, files),
      end_(options, found.hostname, router_),
      requests_(options.ranks, here_) {
  Options redirected = options;
  host_list_ = HostList::of(options, found);
  if (host_list_) redirected.host_list = host_list_->path();
  if (here_) {
    pipes_.emplace(options.ranks);
    redirected.program = pipes_->redirect(options.program);
    setenv(detail::kNamespaceOfLauncher, detail::pid_namespace().c_str(), 1);
    const auto settings = folders_.emplace().settings(found.mpi, options.mpi_args, found.variables);
    redirected.mpi_args.insert(redirected.mpi_args.end(), settings.begin(), settings.end());
  }
  if (const auto notes = starter_.state_notes(options, found); !notes.empty()) {
    redirected.mpi_args.insert(redirected.mpi_args.end(), notes.begin(), notes.end());
    router_.take_out_states(here_);
  }
  // Ranks whose mpirun was killed become children of this process, which can then end them.
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  std::vector<std::string> command = starter_.compose(redirected, found, tagged_);
  if (here_) command = listening_on_loopback(std::move(command));
  router_.note(fmt::format("kolorun: {}: {}: {}", detail::date_text(std::chrono::system_clock::now()),
                           count_of(options.ranks, "rank"), shell_quote(options.program)));
  mpirun_ = start_child(command, options.hand_on_stdin ? Input::inherited : Input::none);
  step_watch_ = StepWatch::of(options, own_environment(), ask_program);
  requests_.begin(mpirun_.pid);
}

void Job::wait_for_events() {
  std::vector<pollfd> fds = {{signals_.fd(), POLLIN, 0}};
  if (elastic_ && stage_ == Stage::running) fds.push_back({elastic_->fd(), POLLIN, 0});  // below 0: ignored
  const bool reading = out_.pending_bytes() < kMostPending && err_.pending_bytes() < kMostPending;
  if (reading && stage_ != Stage::ended) {
    for (const OwnedFd* fd : {&mpirun_.out, &mpirun_.err})
      if (fd->get() >= 0) fds.push_back({fd->get(), POLLIN, 0});
    if (pipes_)
      for (const auto& source : pipes_->sources()) fds.push_back({source.fd.get(), POLLIN, 0});
  }
  for (const OutputSink* sink : {&out_, &err_})
    if (sink->pending_bytes() > 0) fds.push_back({sink->fd(), POLLOUT, 0});
  int timeout = -1;
  const auto look_within = [&](milliseconds most) {
    const int wait = static_cast<int>(std::max<std::int64_t>(0, most.count()));
    timeout = timeout < 0 ? wait : std::min(timeout, wait);
  };
  if (deadline_) look_within(std::chrono::ceil<milliseconds>(*deadline_ - Clock::now()));
  if (stage_ == Stage::running && stop_time_.next()) {
    // The wall clock may be set meanwhile: looked at once a minute.
    constexpr milliseconds kLongest{60000};
    const auto left = std::chrono::ceil<milliseconds>(*stop_time_.next() - std::chrono::system_clock::now());
    look_within(std::min(left, kLongest));
  }
  if (stage_ == Stage::running && !options_.stop_file.empty()) look_within(kStopFilePeriod);
  if (const auto look = requests_.next_look()) look_within(*look);
  if (step_watch_ && stage_ != Stage::ended)
    look_within(std::chrono::ceil<milliseconds>(step_watch_->next_look() - Clock::now()));
  poll(fds.data(), fds.size(), timeout);
}

// False at the end of the stream.
bool Job::read_all(int fd, int rank, Stream stream) {
  char bytes[16384];
  const size_t most = stage_ == Stage::ended ? kMostAtEnd : kMostPending;
  while (out_.pending_bytes() < most && err_.pending_bytes() < most) {
    const ssize_t count = read(fd, bytes, sizeof bytes);
    if (count == 0) return false;
    if (count < 0) return errno == EAGAIN || errno == EINTR;
    const std::string_view text(bytes, count);
    if (step_watch_) step_watch_->hear(Clock::now());
    if (rank == kMpirunItself) router_.from_mpirun(stream, text);
    else router_.from_rank(rank, stream, text);
  }
  return true;
}

void Job::read_outputs() {
  if (mpirun_.out.get() >= 0 && !read_all(mpirun_.out.get(), kMpirunItself, Stream::out))
    mpirun_.out = OwnedFd();
  if (mpirun_.err.get() >= 0 && !read_all(mpirun_.err.get(), kMpirunItself, Stream::err))
    mpirun_.err = OwnedFd();
  if (pipes_)
    for (const auto& source : pipes_->sources()) read_all(source.fd.get(), source.rank, source.stream);
  if (router_.last_save()) stop_time_.save_took(*router_.last_save());
  const bool is_failing = router_.banner().failing() || !end_.lost_host().empty();
  const auto until_end = elastic_ ? kEndWhereElastic : starter_.time_to_end_survivors();
  if (is_failing && stage_ == Stage::running && !deadline_) set_deadline(until_end);
  // Ranks that have lost another cannot stop together.
  if (is_failing && stage_ == Stage::stopping && !std::exchange(fails_to_stop_, true))
    deadline_ = std::min(*deadline_, Clock::now() + starter_.time_to_end_survivors());
  if (end_.lost_host().empty()) return;
  // mpirun takes seconds until it ends the survivors. Those that are here tell their last step sooner.
  if (!elastic_ && !std::exchange(loss_seen_, true)) signal_ranks_below(mpirun_.pid, SIGTERM);
  if (router_.last_step()) end_.tell_lost_host();
}

void Job::flush_sinks() {
  const bool out_read = out_.write_some(), err_read = err_.write_some();
  for (OutputSink* sink : {&out_, &err_})
    if (const std::string error = sink->take_error(); !error.empty())
      router_.say(fmt::format("kolorun: {} cannot be written: {}; lines are missing there",
                              sink == &out_ ? "stdout" : "stderr", error));
  // Nobody reads what the job writes: what SIGPIPE would do to a program.
  if (!(out_read && err_read) && stage_ != Stage::ended) end_at_once();
}

void Job::reap() {
  int status = 0;
  for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
    if (pid != mpirun_.pid) continue;
    if (outlives_step_) status = W_EXITCODE(router_.banner().highest_code(), 0);
    exit_code_ = detail::shell_code(status);
    requests_.end(status);
    if (WIFSIGNALED(status)) {
      // Ranks outlive an mpirun that was killed, as children of this process.
      kill_children(elastic_ ? elastic_->watching_process() : -1);
      if (stage_ == Stage::running && effect_of_requests() != RankRequests::Effect::job_not_begun)
        end_.tell(fmt::format("kolorun: signal {} ({}) has ended {}, and the ranks with it", WTERMSIG(status),
                              sigdescr_np(WTERMSIG(status)), starter_.program()));
    }
    stage_ = Stage::ended;
    deadline_.reset();
  }
}

void Job::ask_to_stop(milliseconds grace) {
  stage_ = Stage::stopping;
  grace_ = grace;
  requests_.ask(SIGTERM);
  set_deadline(requests_.are_asked() ? grace : std::min(grace, RankRequests::kRanksNotThere));
}

RankRequests::Effect Job::effect_of_requests() const {
  return requests_.effect({.has_completed_step = router_.last_step().has_value(),
                           .lacks_daemons = router_.banner().lacks_daemons(),
                           .was_forced = forced_,
                           .others_have_asked = asked_to_grow_ || !router_.going_hosts().empty(),
                           .has_stopped_before = (options_.allotment && options_.allotment->restarts > 0) ||
                                                 (elastic_ && elastic_->has_completed_steps())});
}

void Job::end_mpirun() {
  stage_ = Stage::ending;
  kill(mpirun_.pid, SIGTERM);
  set_deadline(starter_.time_to_end());
}

void Job::kill_everything() {
  stage_ = Stage::killing;
  signal_children_of(mpirun_.pid, SIGKILL);
  kill(-mpirun_.pid, SIGKILL);
  deadline_.reset();  // SIGKILL needs none
}

// mpirun waits for a lost host longer than it takes to start again, and a SIGTERM meanwhile can crash it. The
// ranks of srun are no children of its own: at a SIGTERM it has Slurm kill them, and then waits as mpirun.
void Job::end_for_another_start() {
  if (starter_.takes_ranks_with_it()) return kill_everything();
  end_mpirun();
  set_deadline(kEndWhereElastic);
}

void Job::end_at_once() {
  forced_ = true;
  const bool has_ranks_here = here_ && !requests_.is_kept();
  requests_.give_up();
  if (!has_ranks_here) return end_mpirun();
  // mpirun ends by itself when its ranks are gone; a SIGTERM at the same time can crash it.
  stage_ = Stage::stopping;
  signal_children_of(mpirun_.pid, SIGKILL);
  set_deadline(starter_.time_to_end());
}

void Job::handle_deadline() {
  if (!deadline_ || Clock::now() < *deadline_ || stage_ == Stage::ended) return;
  if (stage_ == Stage::ending) return kill_everything();
  if (fails_to_stop_ || (elastic_ && stage_ == Stage::running)) return end_for_another_start();
  requests_.give_up();
  if (stage_ == Stage::stopping && requests_.are_asked() && !std::exchange(forced_, true))
    tell_grace_is_over();
  end_mpirun();
}

// The ranks then have what is left of the job's time.
void Job::handle_stop_time() {
  if (stage_ != Stage::running) return;
  const auto now = std::chrono::system_clock::now();
  stop_time_.look_again(now);
  if (!stop_time_.when() || now < *stop_time_.when()) return;
  const auto end = stop_time_.confirm();
  if (!end) return;
  router_.say(fmt::format("kolorun: the job's time ends at {}; asking the ranks to stop{}",
                          detail::clock_text(*end), stop_time_.reason()));
  ask_to_stop(std::max(milliseconds(1000), std::chrono::floor<milliseconds>(*end - now)));
}

void Job::handle_stop_file() {
  if (stage_ != Stage::running || options_.stop_file.empty() || Clock::now() < next_look_) return;
  next_look_ = Clock::now() + kStopFilePeriod;
  if (access(options_.stop_file.c_str(), F_OK) != 0) return;
  router_.say(fmt::format("kolorun: {} is there; asking the ranks to stop", options_.stop_file));
  ask_to_stop();
}

// Their ranks have already asked all ranks to stop. An elastic job then goes on elsewhere; but not if
// kolorun's own host goes, or if all see the file and so nobody knows which one goes.
void Job::handle_going_hosts() {
  const auto& going = router_.going_hosts();
  if (going.size() == std::exchange(going_hosts_, going.size()) || stage_ != Stage::running) return;
  next_look_ = {};
  handle_stop_file();
  if (stage_ != Stage::running || !is_this_machine(going.back(), hostname_)) return;
  router_.say("kolorun: this host is about to go; the job stops");
  ask_to_stop();
}

// By SIGUSR1, which kolo's programs take likewise: the first SIGTERM is left to who wants the job to end. It
// has no deadline, since what it would end goes on well. Before its first session a program would be ended by
// the signal, and so would a rank that comes to it later than others.
void Job::handle_news_of_hosts() {
  if (!elastic_ || stage_ != Stage::running) return;
  const bool has_news = elastic_->see_news();
  for (const std::string& warning : elastic_->take_warnings()) router_.say("kolorun: " + warning);
  if (!has_news || asked_to_grow_ || router_.banner().failing()) return;
  if (!router_.take_requests()) return tell_that_it_cannot_grow();
  asked_to_grow_ = elastic_->is_to_grow();
  if (asked_to_grow_) requests_.ask_to_go_on_elsewhere();
}

void Job::tell_that_it_cannot_grow() {
  if (may_yet_take_requests(Clock::now() - start_) || cannot_grow_told_) return;
  const std::string added = elastic_->newcomers();
  cannot_grow_told_ = !added.empty();
  if (cannot_grow_told_)
    router_.say(
        fmt::format("kolorun: {}, but not all ranks take requests to stop: the job does not grow", added));
}

// Whatever the ranks have ended with, srun has told.
void Job::handle_end_of_step() {
  if (!step_watch_ || stage_ == Stage::killing || stage_ == Stage::ended ||
      !step_watch_->is_over(Clock::now()))
    return;
  router_.say("kolorun: srun does not end although Slurm says that its ranks have: srun is ended");
  outlives_step_ = true;
  kill_everything();
}

void Job::handle_signal(int number) {
  if (number == SIGCHLD) return reap();
  if (number == SIGUSR1) return requests_.ask(number);
  if (stage_ == Stage::ended) {
    if (number != SIGUSR2) out_.drop(), err_.drop();
    return;
  }
  if (number == SIGUSR2) {
    kill(mpirun_.pid, number);
    return;
  }
  ++stop_signals_;
  if (stop_signals_ == 1) ask_to_stop();
  else if (stop_signals_ == 2) {
    if (!requests_.is_kept())
      router_.say(fmt::format(
          "kolorun: a second signal, SIG{}, has ended the ranks at once; what was not saved is lost",
          sigabbrev_np(number)));
    end_at_once();
  } else kill_everything();
}

// Also when quiet: it is an error, and of what was lost nobody else speaks.
void Job::tell_grace_is_over() {
  const double waited_s = std::chrono::duration<double>(grace_).count();
  const char* const why =
      waited_s == options_.stop_grace_s ? "--stop-grace" : "what was left of the job's time";
  router_.say(fmt::format(
      "kolorun: the ranks did not stop within {:g} s ({}) and were ended; what was not saved is lost",
      waited_s, why));
}

JobResult Job::run() {
  while (stage_ != Stage::ended) {
    wait_for_events();
    while (const auto number = signals_.next()) handle_signal(*number);
    const bool may_ask = stage_ == Stage::running || stage_ == Stage::stopping;
    if (may_ask && requests_.ask_again() && stage_ == Stage::stopping) set_deadline(grace_);
    handle_deadline();
    handle_stop_time();
    handle_stop_file();
    handle_news_of_hosts();
    read_outputs();
    handle_end_of_step();
    handle_going_hosts();
    flush_sinks();
  }
  read_outputs();
  router_.finish();
  exit_code_ = end_.code_of_stop(exit_code_);
  const auto effect = effect_of_requests();
  exit_code_ = end_.tell_effect(effect, requests_.were_made(), exit_code_);
  const bool was_asked = asked_to_grow_ || !router_.going_hosts().empty();
  const bool has_stopped_to_go_on = was_asked && exit_code_ == options_.stopped_exit_code;
  // Else the signal was kolorun's.
  if (!requests_.were_made() && !has_stopped_to_go_on) end_.tell_failed_rank(exit_code_, forced_);
  end_.tell_lost_host();
  const bool could_not_start = end_.tell_start_failure();
  // mpirun's own code tells nothing: 255, 135.
  if (could_not_start && effect != RankRequests::Effect::job_not_begun) exit_code_ = 1;
  for (flush_sinks(); out_.pending_bytes() + err_.pending_bytes() > 0; flush_sinks()) {
    wait_for_events();
    while (const auto number = signals_.next()) handle_signal(*number);
  }
  if (forced_ && exit_code_ == 0) exit_code_ = 1;
  if (!requests_.were_made()) exit_code_ = end_.exit_code(exit_code_);
  return {.exit_code = exit_code_,
          .stop_requested = requests_.were_made() || forced_,
          .was_cut_short = forced_,
          .last_step = router_.last_step(),
          .planned_steps = router_.planned_steps(),
          .end = end_.first_line(),
          .ranks_disagree = router_.ranks_disagree(),
          .lost_hosts = end_.lost_host().empty() ? std::vector<std::string>{} : std::vector{end_.lost_host()},
          .hosts_without_start = could_not_start ? end_.hosts_without_start() : std::vector<std::string>{},
          .host_of_killed_rank = end_.host_of_killed_rank(),
          .asked_to_grow = asked_to_grow_,
          .going_hosts = router_.going_hosts(),
          .last_sign = router_.last_step_at().value_or(Clock::now())};
}

}  // namespace

JobResult run_job(const Options& options, const Surroundings& found, detail::StopTime& stop_time,
                  SignalQueue& signals, OutputFiles* files, ElasticHosts* elastic) {
  return Job(options, found, stop_time, signals, files, elastic).run();
}

}  // namespace kolo::launcher
