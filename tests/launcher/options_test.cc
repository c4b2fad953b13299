#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <initializer_list>
#include <string>

#include <kolo/core/base/error.h>
#include <kolo/launcher/options.h>

namespace kolo::launcher {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;
using testing::ThrowsMessage;

Options parse(std::initializer_list<const char*> words, const Environment& environment = {}) {
  std::vector<const char*> argv = {"kolorun"};
  argv.insert(argv.end(), words);
  return parse_command_line(static_cast<int>(argv.size()), argv.data(), environment,
                            [](const auto&) { return std::nullopt; });
}

// The text of the error that these words are refused with; "" if they are taken.
std::string refusal(std::initializer_list<const char*> words, const Environment& environment = {}) {
  try {
    parse(words, environment);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Options, LeaveWhatFollowsTheDashesToTheProgram) {
  const Options options = parse({"-n", "2", "--", "prog", "-n", "7", "--help", "--", "x"});
  EXPECT_EQ(options.ranks, 2);
  EXPECT_FALSE(options.help);
  EXPECT_THAT(options.program, ElementsAre("prog", "-n", "7", "--help", "--", "x"));
}

TEST(Options, AreAllRead) {
  const Options options =
      parse({"-q", "--bind", "none", "--prefix=always", "--stop-grace", "2.5", "--restarts", "3", "-x", "A",
             "-x", "B=1", "--dry-run", "--host", "a:2,b:2", "--", "p"});
  EXPECT_TRUE(options.quiet);
  EXPECT_TRUE(options.dry_run);
  EXPECT_EQ(options.bind, Bind::none);
  EXPECT_EQ(options.prefix, Prefix::always);
  EXPECT_EQ(options.stop_grace_s, 2.5);
  EXPECT_EQ(options.restarts, 3);
  EXPECT_THAT(options.exported, ElementsAre("A", "B=1"));
  EXPECT_THAT(options.hosts, ElementsAre(Host{"a", 2}, Host{"b", 2}));
}

TEST(Options, TakeAsManyRanksAsHostsHaveSlots) {
  EXPECT_EQ(parse({"--host", "a:2,b:3", "--", "p"}).ranks, 5);
}

TEST(Options, SplitMpiArgumentsLikeAShell) {
  EXPECT_THAT(
      parse({"-n", "1", "--mpi-args", "--mca btl 'self, tcp'", "--mpi-args", "-v", "--", "p"}).mpi_args,
      ElementsAre("--mca", "btl", "self, tcp", "-v"));
  EXPECT_THAT(refusal({"-n", "1", "--mpi-args", "--mca 'x", "--", "p"}), HasSubstr("a quote is not closed"));
}

TEST(Options, RefuseRanksThatAreNoNumberOfAtLeastOne) {
  for (const char* number : {"0", "-1", "x", "2x", "", "1.5", "nan", "99999999999999999999"})
    EXPECT_THAT(refusal({"-n", number, "--", "p"}), HasSubstr(std::string("-n \"") + number + "\""))
        << number;
}

TEST(Options, RefuseTimesAndCountsThatAreNoNumbers) {
  for (const char* text : {"-1", "nan", "inf", "5s", ""})
    EXPECT_THAT(refusal({"-n", "1", "--stop-grace", text, "--", "p"}), HasSubstr("--stop-grace")) << text;
  for (const char* text : {"-1", "x", "1.5"})
    EXPECT_THAT(refusal({"-n", "1", "--restarts", text, "--", "p"}), HasSubstr("--restarts")) << text;
}

TEST(Options, NameTheNearestOptionAndValue) {
  EXPECT_THAT(refusal({"--hots", "a", "--", "p"}),
              HasSubstr("unknown option --hots; did you mean \"--host\"?"));
  EXPECT_THAT(refusal({"-n", "1", "--bind", "cores", "--", "p"}), HasSubstr("did you mean \"core\"?"));
  EXPECT_THAT(refusal({"-n", "1", "--prefix", "alwys", "--", "p"}), HasSubstr("did you mean \"always\"?"));
}

TEST(Options, AreNotGuessedFromTheirBeginning) {
  EXPECT_THAT(refusal({"-n", "1", "--rest", "2", "--", "p"}), HasSubstr("--rest"));
}

TEST(Options, EndWithTheFirstWordThatIsNone) {
  const Options options =
      parse({"-n", "2", "-q", "--bind=none", "--restarts", "1", "prog", "-n", "7", "--help"});
  EXPECT_EQ(options.ranks, 2);
  EXPECT_EQ(options.restarts, 1);
  EXPECT_FALSE(options.help);
  EXPECT_THAT(options.program, ElementsAre("prog", "-n", "7", "--help"));
  EXPECT_THAT(parse({"-qn", "3", "./prog"}).program, ElementsAre("./prog"));
  EXPECT_THAT(parse({"-n3", "prog", "--", "x"}).program, ElementsAre("prog", "--", "x"));
}

TEST(Options, AreSpelledAsOtherLaunchersDo) {
  EXPECT_EQ(parse({"-np", "4", "prog"}).ranks, 4);
  EXPECT_THAT(parse({"-H", "a:2,b:2", "prog"}).hosts, ElementsAre(Host{"a", 2}, Host{"b", 2}));
  EXPECT_THAT(refusal({"-machinefile", "/no/such", "prog"}), HasSubstr("/no/such"));
}

const Environment kSlurm = {
    {"SLURM_JOB_ID", "17"}, {"SLURM_JOB_NODELIST", "a[1-4]"}, {"SLURM_TASKS_PER_NODE", "2(x3),1"}};

TEST(Options, TakeRanksAndHostsFromTheAllotment) {
  EXPECT_EQ(parse({"prog"}, kSlurm).ranks, 7);
  EXPECT_THAT(parse({"prog"}, kSlurm).hosts,
              ElementsAre(Host{"a1", 2}, Host{"a2", 2}, Host{"a3", 2}, Host{"a4", 1}));
  Environment fewer = kSlurm;
  fewer["SLURM_NTASKS"] = "6";
  EXPECT_EQ(parse({"prog"}, fewer).ranks, 6);
  EXPECT_EQ(parse({"-n", "2", "prog"}, fewer).ranks, 2);
}

TEST(Options, NameHostsThemselvesInAnAllotment) {
  EXPECT_EQ(parse({"-H", "a1:3", "prog"}, kSlurm).ranks, 3);
  EXPECT_EQ(parse({"-n", "2", "--mpi-args", "--host a1", "prog"}, kSlurm).hosts.size(), 0u);
  const Environment unreadable = {{"PBS_NODEFILE", "/no/such"}};
  EXPECT_EQ(parse({"-H", "a1:3", "prog"}, unreadable).ranks, 3);
  EXPECT_THAT(refusal({"prog"}, unreadable), HasSubstr("PBS_NODEFILE=\"/no/such\" says no hosts"));
}

TEST(Options, NameTheVariableWhereMoreRanksAreAskedForThanWereAllotted) {
  EXPECT_THAT(
      refusal({"-n", "9", "prog"}, kSlurm),
      HasSubstr("-n 9 ranks do not fit into the 7 slots of a1:2,a2:2,a3:2,a4:1, from SLURM_TASKS_PER_NODE"));
}

TEST(Options, ShowAnAllotmentWithoutAProgram) {
  EXPECT_TRUE(parse({"--show-allotment", "--json"}, kSlurm).show_allotment);
  EXPECT_THAT(refusal({"--show-allotment"}), HasSubstr("no batch system has allotted"));
}

TEST(Options, WaitForTheWorkersOfAnOperatorAndElsewhereWhereAsked) {
  const std::string path = testing::TempDir() + "/hostfile";
  std::ofstream(path) << "worker-0 slots=2\nworker-1 slots=2\n";
  const Environment of_operator = {{"OMPI_MCA_orte_default_hostfile", path}};
  EXPECT_EQ(parse({"p"}, of_operator).start_timeout_s, 300);
  EXPECT_EQ(parse({"--start-timeout", "20", "p"}, of_operator).start_timeout_s, 20);
  EXPECT_EQ(parse({"--host", "a,b", "p"}, of_operator).start_timeout_s, 0);
  EXPECT_EQ(parse({"--host", "a,b", "p"}).start_timeout_s, 0);
  EXPECT_EQ(parse({"--host", "a,b", "--start_timeout=60", "p"}).start_timeout_s, 60) << "Horovod's";
  Environment in_slurm = of_operator;
  in_slurm.insert({{"SLURM_JOB_ID", "7"}, {"SLURM_JOB_NODELIST", "a"}, {"SLURM_TASKS_PER_NODE", "1"}});
  EXPECT_EQ(parse({"p"}, in_slurm).start_timeout_s, 0);
}

TEST(Options, NeedRanksAndAProgram) {
  EXPECT_THAT(refusal({"--", "p"}), HasSubstr("number of ranks is missing"));
  EXPECT_THAT(refusal({"-n", "2"}), HasSubstr("no program is given"));
  EXPECT_THAT(refusal({"-n", "2", "--"}), HasSubstr("no program is given"));
}

TEST(Options, RefuseMoreRanksThanSlotsUnlessMpirunMayOverfill) {
  EXPECT_THAT(refusal({"-n", "5", "--host", "a:2,b:2", "--", "p"}),
              HasSubstr("-n 5 ranks do not fit into the 4 slots of a:2,b:2"));
  EXPECT_EQ(refusal({"-n", "5", "--host", "a:2,b:2", "--mpi-args", "--oversubscribe", "--", "p"}), "");
}

TEST(Options, OfAClusterSayHowManyRanksThereAre) {
  const Options options = parse({"--cluster", "ps=1,worker=2", "prog"});
  EXPECT_EQ(options.ranks, 3);
  EXPECT_EQ(options.cluster_port, 2222);
  EXPECT_EQ(parse({"-n", "3", "--cluster", "ps=1,worker=2", "prog"}).ranks, 3);
  EXPECT_THAT(refusal({"-n", "2", "--cluster", "ps=1,worker=2", "prog"}), HasSubstr("has 3 tasks"));
  EXPECT_THAT(refusal({"-n", "2", "--cluster-port", "7", "prog"}), HasSubstr("belongs to --cluster"));
  EXPECT_THAT(refusal({"--cluster", "ps=1", "--cluster-port", "70000", "prog"}), HasSubstr("--cluster-port"));
}

TEST(Options, RefuseAHostListBesideAHostfile) {
  EXPECT_THAT(refusal({"--host", "a", "--hostfile", "f", "--", "p"}), HasSubstr("--host and --hostfile"));
}

TEST(Options, RefuseExportsThatNameNoVariable) {
  for (const char* name : {"", "1A", "A-B", "=x"})
    EXPECT_THAT(refusal({"-n", "1", "-x", name, "--", "p"}), HasSubstr("-x")) << name;
}

TEST(Options, HelpVersionAndCheckNeedNothingElse) {
  EXPECT_TRUE(parse({"--help"}).help);
  EXPECT_TRUE(parse({"--version"}).version);
  EXPECT_TRUE(parse({"--check-build"}).check_build);
}

TEST(Options, TakeSmallHForHelpAndLargeHForHosts) {
  EXPECT_TRUE(parse({"-h"}).help);
  EXPECT_TRUE(parse({"-qh"}).help);
  const Options hosts = parse({"-H", "h1:2", "prog", "-h"});
  EXPECT_FALSE(hosts.help);
  EXPECT_EQ(hosts.hosts[0].name, "h1");
  EXPECT_THAT(hosts.program, ElementsAre("prog", "-h"));
}

TEST(Options, OfTheNetworkCheckNeedNoProgram) {
  const Options alone =
      parse({"-n", "2", "--check-network", "--gradient-bytes", "1000", "--step-ms", "0.5", "--json"});
  EXPECT_TRUE(alone.check_network && alone.json);
  EXPECT_THAT(alone.program, testing::IsEmpty());
  EXPECT_EQ(alone.gradient_bytes, 1000);
  EXPECT_EQ(alone.step_ms, 0.5);
  EXPECT_EQ(parse({"-n", "2", "--check-network", "--", "true"}).program.size(), 1u);
  EXPECT_THAT(refusal({"-n", "2", "--json", "--", "true"}), HasSubstr("--json belongs to --check-network"));
  EXPECT_THAT(refusal({"-n", "2", "--check-network", "--step-ms", "0"}), HasSubstr("--step-ms \"0\""));
  EXPECT_THAT(refusal({"-n", "2", "--check-network", "--gradient-bytes", "0"}),
              HasSubstr("--gradient-bytes \"0\""));
}

TEST(ForeignOptions, AreTakenWhereKolorunHasTheLike) {
  const Options mpi =
      parse({"-np", "2", "--allow-run-as-root", "--oversubscribe", "-mca", "btl", "self, tcp",
             "--map-by=slot", "--bind-to", "none", "--output-filename", "logs", "p", "-np", "7"});
  EXPECT_EQ(mpi.ranks, 2);
  EXPECT_THAT(mpi.mpi_args, ElementsAre("--oversubscribe", "--mca", "btl", "self, tcp", "--map-by", "slot"));
  EXPECT_EQ(mpi.bind, Bind::none);
  EXPECT_EQ(mpi.log_dir, "logs");
  EXPECT_THAT(mpi.program, ElementsAre("p", "-np", "7"));
  const Options torch = parse({"--standalone", "--nproc_per_node=3", "--max-restarts", "2", "p"});
  EXPECT_EQ(torch.ranks, 3);
  EXPECT_EQ(torch.restarts, 2);
  const Options logged = parse({"--nproc_per_node=1", "--no_python", "--log_dir", "logs", "p"});
  EXPECT_EQ(logged.log_dir, "logs");
  EXPECT_THAT(logged.program, ElementsAre("p"));
  EXPECT_THAT(parse({"-n", "1", "--use-hwthread-cpus", "p"}).mpi_args, ElementsAre("--use-hwthread-cpus"));
  EXPECT_EQ(parse({"--nnodes=1", "--nproc-per-node=2", "p"}).ranks, 2);
  EXPECT_EQ(parse({"--nnodes", "1", "--nproc-per-node=2", "p"}).ranks, 2);
  EXPECT_THAT(refusal({"-n", "2", "--oversubscribe=1", "p"}), HasSubstr("--oversubscribe takes no value"));
  const Options horovod = parse({"--num-proc", "4", "--hosts", "a:2,b:2", "--verbose", "p"});
  EXPECT_EQ(horovod.ranks, 4);
  EXPECT_THAT(horovod.hosts, ElementsAre(Host{"a", 2}, Host{"b", 2}));
  EXPECT_TRUE(horovod.verbose);
}

TEST(ForeignOptions, AreElasticWhereHorovodsAre) {
  const Options options =
      parse({"-np", "4", "--min-np", "2", "--max-np=6", "--host-discovery-script", "./hosts.sh",
             "--slots-per-host", "2", "--blacklist-cooldown-range", "5", "100", "--reset-limit", "7",
             "--elastic-timeout", "60", "-H", "a:2,b:2", "p"});
  ASSERT_TRUE(options.elastic);
  EXPECT_EQ(options.elastic->rules.first_ranks, 4);
  EXPECT_EQ(options.elastic->rules.min_ranks, 2);
  EXPECT_EQ(options.elastic->rules.max_ranks, 6);
  EXPECT_EQ(options.elastic->discover, "./hosts.sh");
  EXPECT_EQ(options.elastic->slots_per_host, 2);
  EXPECT_EQ(options.elastic->rules.least_cooling, std::chrono::seconds(5));
  EXPECT_EQ(options.elastic->rules.most_cooling, std::chrono::seconds(100));
  EXPECT_EQ(options.elastic->wait_for_hosts, std::chrono::seconds(60));
  EXPECT_EQ(options.restarts, 7);
  EXPECT_THAT(options.program, ElementsAre("p"));
}

TEST(ForeignOptions, NameKolorunsCounterpartWhereTheyAreOfAnotherForm) {
  EXPECT_THAT(refusal({"--nnodes=2", "p"}),
              testing::AllOf(HasSubstr("--nnodes"), HasSubstr("--host a:2,b:2")));
  EXPECT_THAT(refusal({"-n", "2", "--rdzv_backend", "c10d", "p"}), HasSubstr("--host a:2,b:2"));
  EXPECT_THAT(refusal({"-npernode", "2", "p"}), HasSubstr("slots"));
  EXPECT_THAT(refusal({"-n", "2", "--ssh-port", "22", "p"}), HasSubstr("plm_rsh_args"));
  EXPECT_THAT(refusal({"-n", "2", "-m", "train"}), HasSubstr("-m: start Python itself: kolorun"));
  for (const char* option : {"--tee", "-t", "--redirects", "-r"})
    EXPECT_THAT(refusal({"-n", "2", option, "3", "p"}), HasSubstr("--log-dir DIR")) << option;
  EXPECT_THAT(refusal({"-n", "2", "--config-file", "f", "p"}), HasSubstr("no file of options"));
  EXPECT_THAT(refusal({"-n", "2", "--bind-to", "socket", "p"}), HasSubstr("allowed: core, none"));
  EXPECT_THAT(refusal({"--mca", "btl"}), HasSubstr("--mca takes 2 values, and 1 is given"));
}

TEST(ElasticOptions, AreNoneWithoutElastic) {
  EXPECT_FALSE(parse({"-n", "2", "p"}).elastic);
  EXPECT_EQ(parse({"-n", "2", "p"}).restarts, 0);
  for (const char* option :
       {"--min-ranks", "--max-ranks", "--discover", "--discover-every", "--slots-per-host", "--spares",
        "--cooldown", "--grow-after", "--wait-for-hosts"})
    EXPECT_THAT(refusal({"-n", "2", option, "1", "p"}),
                testing::AllOf(HasSubstr(option), HasSubstr("belongs to --elastic")));
}

TEST(ElasticOptions, HaveTheirUsualValues) {
  const Options options = parse({"--elastic", "-H", "a:2,b:2", "p"});
  ASSERT_TRUE(options.elastic);
  EXPECT_EQ(options.ranks, 4);
  EXPECT_EQ(options.restarts, 3);
  EXPECT_EQ(options.elastic->rules.min_ranks, 1);
  EXPECT_EQ(options.elastic->rules.spares, 0);
  EXPECT_EQ(options.elastic->rules.least_cooling, std::chrono::seconds(10));
  EXPECT_EQ(options.elastic->rules.most_cooling, std::chrono::seconds(300));
  EXPECT_EQ(options.elastic->rules.grow_after, std::chrono::seconds(60));
  EXPECT_EQ(options.elastic->wait_for_hosts, std::chrono::seconds(600));
  EXPECT_EQ(parse({"--elastic", "--restarts", "0", "-H", "a:2", "p"}).restarts, 0);
}

TEST(ElasticOptions, TellAStopFromAnEndAndHideTheCodeThatNobodyAskedFor) {
  const Options options = parse({"--elastic", "-H", "a:2", "p"});
  EXPECT_EQ(options.stopped_exit_code, 75);
  EXPECT_TRUE(options.elastic->hides_stopped_code);
  const Options asked = parse({"--elastic", "--stopped-exit-code", "33", "-H", "a:2", "p"});
  EXPECT_EQ(asked.stopped_exit_code, 33);
  EXPECT_FALSE(asked.elastic->hides_stopped_code);
}

TEST(ElasticOptions, RunOnThisMachineWhereNoHostIsNamed) {
  EXPECT_THAT(parse({"--elastic", "-n", "3", "p"}).hosts, ElementsAre(Host{"localhost", 3}));
}

TEST(ElasticOptions, RefuseWhatCannotBe) {
  const auto refused = [](std::initializer_list<const char*> words) {
    std::vector<const char*> all = {"--elastic", "-H", "a:2,b:2"};
    all.insert(all.end(), words);
    all.push_back("p");
    all.insert(all.begin(), "kolorun");
    try {
      parse_command_line(static_cast<int>(all.size()), all.data(), {},
                         [](const auto&) { return std::nullopt; });
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_THAT(refused({"--min-ranks", "5"}),
              HasSubstr("--min-ranks 5 do not fit into the 4 slots of a:2,b:2"));
  EXPECT_THAT(refused({"--min-ranks", "3", "--max-ranks", "2"}), HasSubstr("more than the 2 ranks"));
  EXPECT_THAT(refused({"-n", "2", "--min-ranks", "3", "--max-ranks", "4"}), HasSubstr("-n 2 is not between"));
  EXPECT_THAT(refused({"--spares", "2"}), HasSubstr("--spares 2 leaves none of the 2 hosts"));
  EXPECT_THAT(refused({"--cooldown", "10"}), HasSubstr("as in 10:300"));
  EXPECT_THAT(refused({"--cooldown", "10:5"}), HasSubstr("the most is less than the least"));
  EXPECT_THAT(refused({"--slots-per-host", "2"}), HasSubstr("belongs to --discover"));
  EXPECT_THAT(refused({"--cluster", "ps=1,worker=3"}), HasSubstr("--cluster"));
  EXPECT_THAT(refused({"--mpi-args", "--host x"}), HasSubstr("chooses the hosts"));
}

TEST(ElasticOptions, TakeTheHostsThatDiscoveryPrints) {
  const std::vector<const char*> words = {"kolorun",          "--elastic", "--discover", "list",
                                          "--slots-per-host", "4",         "--",         "p"};
  const auto with = [&](const Ask& ask) {
    return parse_command_line(static_cast<int>(words.size()), words.data(), {}, ask);
  };
  const Options options = with([](const std::vector<std::string>& command) {
    EXPECT_THAT(command, ElementsAre("sh", "-c", "list"));
    return std::optional<std::string>("a:2\nb slots=3\nc\n");
  });
  EXPECT_THAT(options.hosts, ElementsAre(Host{"a", 2}, Host{"b", 3}, Host{"c", 4}));
  EXPECT_EQ(options.ranks, 9);
  EXPECT_THROW(with([](const auto&) { return std::nullopt; }), NotFoundError);
  EXPECT_THAT([&] { with([](const auto&) { return std::optional<std::string>("a:many\n"); }); },
              ThrowsMessage<InvalidArgumentError>(
                  AllOf(StartsWith("--discover list: line:1: \"many\""), HasSubstr("no hosts are named"))));
}

TEST(ElasticOptions, KeepTheNamedHostsWhereDiscoveryPrintsNone) {
  const std::vector<const char*> words = {"kolorun",    "--elastic", "-H", "a:2",
                                          "--discover", "list",      "--", "p"};
  for (const char* printed : {"a:many\n", "", "a b c\n"}) {
    const Options options =
        parse_command_line(static_cast<int>(words.size()), words.data(), {},
                           [&](const auto&) { return std::optional<std::string>(printed); });
    EXPECT_THAT(options.hosts, ElementsAre(Host{"a", 2})) << printed;
  }
}

TEST(Options, AreAllInTheHelp) {
  for (const char* option :
       {"-n ",          "--host ",       "--hostfile",   "--bind",           "--prefix",
        "--stop-grace", "--restarts",    "-x ",          "--mpi-args",       "--dry-run",
        "-q ",          "--check-build", "--help",       "--version",        "--elastic",
        "--min-ranks",  "--max-ranks",   "--discover ",  "--discover-every", "--slots-per-host",
        "--spares",     "--cooldown",    "--grow-after", "--wait-for-hosts"})
    EXPECT_THAT(help_text(), HasSubstr(option));
}

}  // namespace
}  // namespace kolo::launcher
