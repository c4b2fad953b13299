#include <kolo/launcher/rank_starter.h>

#include <kolo/launcher/hydra_command.h>
#include <kolo/launcher/srun_command.h>

namespace kolo::launcher {
namespace {

class ByMpirun final : public RankStarter {
 public:
  std::string program() const override { return "mpirun"; }
  std::vector<std::string> compose(const Options& options, const Surroundings& found,
                                   bool tagged) const override {
    return compose_mpirun(options, found, tagged);
  }
  std::string host_lines(const Options& options, const Surroundings& found) const override {
    return host_lines_of_mpirun(options, found);
  }
  LineMarks marks(const Surroundings& found) const override {
    return found.mpi.has_prte() ? LineMarks::tags_and_blank : LineMarks::tags;
  }
  std::vector<std::string> state_notes(const Options& options, const Surroundings& found) const override {
    return state_notes_of_mpirun(options, found);
  }
  bool has_ranks_as_children() const override { return true; }
};

class BySrun final : public RankStarter {
 public:
  std::string program() const override { return "srun"; }
  std::vector<std::string> compose(const Options& options, const Surroundings& found,
                                   bool tagged) const override {
    return compose_srun(options, found, tagged);
  }
  std::string host_lines(const Options& options, const Surroundings& found) const override {
    return host_lines_of_srun(options, found);
  }
  LineMarks marks(const Surroundings&) const override { return LineMarks::labels; }
  // It sends SIGTERM at once, which ranks may ignore, and SIGKILL when the site's KillWait is over, half a
  // minute as a rule. A second is for what kolo's ranks say of the loss.
  std::chrono::milliseconds time_to_end_survivors() const override { return std::chrono::seconds(1); }
  // A SIGTERM has it send SIGKILL at once, but none if it ends the job already.
  std::chrono::milliseconds time_to_end() const override { return std::chrono::seconds(1); }
  // They are Slurm's daemons'.
  bool takes_ranks_with_it() const override { return false; }
};

class ByHydra final : public RankStarter {
 public:
  std::string program() const override { return kHydra; }
  std::vector<std::string> compose(const Options& options, const Surroundings& found,
                                   bool tagged) const override {
    return compose_hydra(options, found, tagged);
  }
  std::string host_lines(const Options& options, const Surroundings& found) const override {
    return host_lines_of_hydra(options, found);
  }
  LineMarks marks(const Surroundings&) const override { return LineMarks::tags; }
};

}  // namespace

const RankStarter& starter_of(Launcher launcher) {
  static const ByMpirun by_mpirun;
  static const BySrun by_srun;
  static const ByHydra by_hydra;
  if (launcher == Launcher::srun) return by_srun;
  if (launcher == Launcher::hydra) return by_hydra;
  return by_mpirun;
}

}  // namespace kolo::launcher
