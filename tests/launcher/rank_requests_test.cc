#include <kolo/launcher/rank_requests.h>

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

namespace kolo::launcher {
namespace {

using Effect = RankRequests::Effect;

int exited(int code) { return W_EXITCODE(code, 0); }
int killed_by(int number) { return W_EXITCODE(0, number); }

// A launcher on other hosts, which takes SIGUSR1 and runs until the test is over.
class Requests : public testing::Test {
 protected:
  Requests() {
    launcher_ = fork();
    if (launcher_ == 0) {
      signal(SIGUSR1, SIG_IGN);
      pause();
      _exit(0);
    }
  }
  ~Requests() override {
    kill(launcher_, SIGKILL);
    waitpid(launcher_, nullptr, 0);
  }
  // That were made once, of a job that ends so.
  RankRequests made(int wait_status, bool are_children = false) const {
    RankRequests requests(2, are_children);
    requests.begin(launcher_);
    requests.ask(SIGTERM);
    if (are_children) requests.give_up();
    requests.end(wait_status);
    return requests;
  }

  pid_t launcher_ = 0;
};

TEST_F(Requests, ThatWereNotMadeHaveDoneNothing) {
  RankRequests requests(2, false);
  requests.begin(launcher_);
  requests.end(exited(128 + SIGTERM));
  EXPECT_EQ(requests.effect({}), Effect::none);
  EXPECT_EQ(requests.effect({.others_have_asked = true}), Effect::ranks_ended_early);
  EXPECT_FALSE(requests.were_made());
}

TEST_F(Requests, ThatEndTheLauncherFoundNoRank) {
  EXPECT_EQ(made(killed_by(SIGUSR1)).effect({}), Effect::job_not_begun);
  EXPECT_EQ(made(killed_by(SIGTERM)).effect({}), Effect::ranks_ended_early);
}

TEST_F(Requests, ThatAreGivenUpFoundNoRank) {
  EXPECT_EQ(made(exited(143), true).effect({}), Effect::job_not_begun);
  EXPECT_EQ(made(exited(143), true).effect({.has_completed_step = true}), Effect::none);
}

TEST_F(Requests, FoundNoRankWhereMpirunLacksDaemonsAndEndsWell) {
  EXPECT_EQ(made(exited(0)).effect({.lacks_daemons = true}), Effect::job_not_begun);
  EXPECT_EQ(made(exited(1)).effect({.lacks_daemons = true}), Effect::none);
}

TEST_F(Requests, HaveEndedRanksThatTheSignalEnds) {
  for (const int code : {128 + SIGTERM, 128 + SIGUSR1, 244})
    EXPECT_EQ(made(exited(code)).effect({}), Effect::ranks_ended_early) << code;
  EXPECT_EQ(made(exited(3)).effect({}), Effect::none);
  EXPECT_EQ(made(exited(143)).effect({.was_forced = true}), Effect::none);
  EXPECT_EQ(made(exited(143)).effect({.has_completed_step = true}), Effect::none);
}

// The batch system, or an elastic job, has started it again: it stops when it is asked.
TEST_F(Requests, HaveEndedRanksThatDoTakeThemWhereAnEarlierStartDid) {
  RankRequests requests(2, false);
  requests.begin(launcher_, std::chrono::minutes(3));
  requests.ask(SIGTERM);
  requests.end(exited(143));
  EXPECT_EQ(requests.effect({}), Effect::ranks_ended);
  EXPECT_EQ(requests.effect({.has_stopped_before = true}), Effect::ranks_ended_early);
}

// Whose ranks have gone, while mpirun does not end.
TEST_F(Requests, ThatAreGivenUpLateDoNotTellThatTheJobHadNotBegun) {
  RankRequests requests(2, true);
  requests.begin(launcher_, std::chrono::minutes(3));
  requests.ask(SIGTERM);
  EXPECT_TRUE(requests.is_kept());
  requests.give_up();
  EXPECT_FALSE(requests.is_kept());
  requests.end(exited(143));
  EXPECT_EQ(requests.effect({}), Effect::ranks_ended);
}

TEST_F(Requests, AreOnlyNotedWhenTheLauncherHasEnded) {
  RankRequests requests(2, false);
  requests.begin(launcher_);
  requests.end(exited(0));
  requests.ask(SIGUSR1);
  EXPECT_TRUE(requests.were_made());
  EXPECT_FALSE(requests.are_asked());
}

TEST(MayYetTakeRequests, IsTrueOfTheFirstTwoMinutes) {
  using namespace std::chrono_literals;
  EXPECT_TRUE(may_yet_take_requests(119s));
  EXPECT_FALSE(may_yet_take_requests(120s));
}

}  // namespace
}  // namespace kolo::launcher
