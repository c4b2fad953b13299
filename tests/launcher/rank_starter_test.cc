// The commands of all launchers for the same thirteen jobs, as they stand in commands/*.txt. After a change
// that is meant, KOLO_TEST_WRITE_COMMANDS=1 writes these files anew, for the eye.
#include <kolo/launcher/rank_starter.h>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <functional>
#include <sstream>

namespace kolo::launcher {
namespace {

struct Job {
  const char* what;
  std::function<void(Options&, Surroundings&)> change;
  bool tagged = false;
};

void allot(Options& options, std::vector<int> cores) {
  options.allotment.emplace();
  options.allotment->system = "Slurm";
  options.allotment->job = "46";
  options.allotment->hosts = options.hosts;
  options.allotment->cores = std::move(cores);
}

const std::vector<Host> kTwo = {{"a", 2}, {"b", 2}};

// On a machine of 8 cores called here.
const std::vector<Job>& jobs() {
  static const std::vector<Job> all = {
      {"two ranks here", [](Options& o, Surroundings&) { o.ranks = 2; }},
      {"more ranks than cores", [](Options& o, Surroundings&) { o.ranks = 9; }},
      {"unbound", [](Options& o, Surroundings&) { o.ranks = 2, o.bind = Bind::none; }},
      {"as root, with standard input",
       [](Options& o, Surroundings& s) { o.ranks = 2, s.root = true, o.hand_on_stdin = true; }},
      {"two hosts", [](Options& o, Surroundings&) { o.hosts = kTwo, o.ranks = 4; }, true},
      {"two hosts, bound",
       [](Options& o, Surroundings&) { o.hosts = kTwo, o.ranks = 4, o.bind = Bind::core; }},
      {"three ranks, a variable of the user's",
       [](Options& o, Surroundings& s) {
         o.hosts = kTwo, o.ranks = 3, o.exported = {"MODE=a b", "DIR"};
         s.variables = {"DIR", "PATH", "HOME"};
       },
       true},
      {"two hosts of Slurm",
       [](Options& o, Surroundings&) {
         o.hosts = kTwo, o.ranks = 4, allot(o, {4, 4});
       },
       true},
      {"two hosts of Slurm, unequal cores, bound",
       [](Options& o, Surroundings&) {
         o.hosts = kTwo, o.ranks = 4, o.bind = Bind::core, allot(o, {8, 4});
       }},
      {"a job of two components",
       [](Options& o, Surroundings&) {
         o.hosts = kTwo, o.ranks = 4, allot(o, {2, 2});
         o.allotment->groups = 2;
       }},
      {"an elastic one, after the loss of a host",
       [](Options& o, Surroundings&) {
         o.hosts = {{"a", 2}, {"b", 2}, {"c", 2}}, allot(o, {2, 2, 2});
         o.hosts = {{"a", 2}, {"c", 2}}, o.ranks = 4, o.stopped_exit_code = 75;
         o.elastic.emplace();
       },
       true},
      {"a hundred hosts",
       [](Options& o, Surroundings&) {
         for (int i = 1; i <= 100; ++i) o.hosts.push_back({fmt::format("n{}", i), 2});
         o.ranks = 200, o.host_list = "/proc/7/fd/9", allot(o, std::vector<int>(100, 4));
       },
       true},
      {"with words for the launcher", [](Options& o, Surroundings&) {
         o.ranks = 2, o.mpi_args = {"-bind-to", "socket"};
       }}};
  return all;
}

std::string commands_of(Launcher launcher, const Mpi& mpi) {
  std::string text;
  for (const Job& job : jobs()) {
    Options options;
    options.launcher = launcher;
    options.program = {"prog", "x"};
    Surroundings found;
    found.mpi = mpi;
    found.cores.count = 8;
    found.hostname = "here";
    job.change(options, found);
    // srun needs an allotment.
    if (launcher == Launcher::srun && !options.allotment) continue;
    text += fmt::format("# {}\n{}\n", job.what,
                        shell_quote(starter_of(launcher).compose(options, found, job.tagged)));
  }
  return text;
}

struct Column {
  const char* file;
  Launcher launcher;
  Mpi mpi;
};

class Commands : public testing::TestWithParam<Column> {};

TEST_P(Commands, AreThoseOfTheFile) {
  const std::string path = fmt::format("{}/{}.txt", COMMANDS, GetParam().file);
  const std::string found = commands_of(GetParam().launcher, GetParam().mpi);
  if (std::getenv("KOLO_TEST_WRITE_COMMANDS") != nullptr) std::ofstream(path) << found;
  std::ostringstream expected;
  expected << std::ifstream(path).rdbuf();
  EXPECT_EQ(found, expected.str());
}

INSTANTIATE_TEST_SUITE_P(OfEachLauncher, Commands,
                         testing::Values(Column{"mpirun_4", Launcher::mpirun, {MpiKind::open_mpi, "4.1.4"}},
                                         Column{"mpirun_5", Launcher::mpirun, {MpiKind::open_mpi, "5.0.3"}},
                                         Column{"hydra", Launcher::hydra, {MpiKind::mpich, "4.0.2"}},
                                         Column{"srun", Launcher::srun, {MpiKind::open_mpi, "4.1.4"}}),
                         [](const auto& test) { return std::string(test.param.file); });

}  // namespace
}  // namespace kolo::launcher
