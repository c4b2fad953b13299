#include <kolo/collectives/engine/negotiator.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "simulated_negotiation.h"

namespace kolo::detail {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class ManyRanks : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Negotiator, ManyRanks, testing::Values(2, 3, 4, 5, 6, 17, 64));

TEST_P(ManyRanks, AgreeOnOneOrderOfNamesThatComeInAnyOrder) {
  SimulatedNegotiation ranks(GetParam(), 16);
  std::vector<std::string> names;
  for (int i = 0; i < 40; ++i) names.push_back(fmt::format("t{}", i));
  for (int step = 0; step < 4; ++step) {
    for (int rank = 0; rank < ranks.size(); ++rank) {
      std::shuffle(names.begin(), names.end(), ranks.random());
      for (const auto& name : names) ranks.rank(rank).submit(allreduce_request(name));
      if (ranks.random()() % 2 == 0) ranks.flush(rank);
      ranks.deliver_one();
    }
    ranks.settle();
    const auto order = ranks.story(0);
    EXPECT_EQ(order.size(), names.size());
    for (int rank = 1; rank < ranks.size(); ++rank) EXPECT_EQ(ranks.story(rank), order) << "rank " << rank;
  }
}

TEST_P(ManyRanks, SendAtMostTwoMessagesEachForAThousandKnownNames) {
  SimulatedNegotiation ranks(GetParam(), 1024);
  std::vector<RequestPtr> requests;
  for (int i = 0; i < 1000; ++i) requests.push_back(allreduce_request(fmt::format("tensor.{}", i), {256}));
  const auto& last = ranks.rank(ranks.size() - 1);
  for (int step = 0; step < 3; ++step) {
    const auto before = ranks.messages(), bytes_before = last.counts().bytes;
    for (int rank = 0; rank < ranks.size(); ++rank) {
      std::shuffle(requests.begin(), requests.end(), ranks.random());
      for (const auto& request : requests) ranks.rank(rank).submit(request);
    }
    ranks.settle();
    // One up and one down each edge of the tree.
    EXPECT_EQ(ranks.messages() - before, 2 * (ranks.size() - 1));
    for (int rank = 0; rank < ranks.size(); ++rank) EXPECT_EQ(ranks.story(rank).size(), 1000U);
    EXPECT_LT(last.counts().bytes - bytes_before, step == 0 ? 100'000 : 200);  // then a bit for each name
  }
  EXPECT_EQ(last.counts().hits, 2000);
}

TEST_P(ManyRanks, AnswerEachDisagreementOnEveryRankAndGoOn) {
  SimulatedNegotiation ranks(GetParam(), 16);
  const int odd = ranks.size() - 1;
  for (int round = 0; round < 2; ++round) {
    for (int rank = 0; rank < ranks.size(); ++rank)
      ranks.rank(rank).submit(allreduce_request("x", {rank == odd ? 18 : 17}));
    ranks.settle();
    const auto text = fmt::format("x!Mismatched shapes for x: rank 0 has [17], rank {} has [18]", odd);
    for (int rank = 0; rank < ranks.size(); ++rank) EXPECT_THAT(ranks.story(rank), ElementsAre(text));
    ranks.submit_everywhere(allreduce_request("x", {17}));
    ranks.settle();
    for (int rank = 0; rank < ranks.size(); ++rank) EXPECT_THAT(ranks.story(rank), ElementsAre("x"));
  }
}

TEST_P(ManyRanks, LearnOfARefusalBeforeAndAfterTheyCome) {
  SimulatedNegotiation ranks(GetParam(), 16);
  const int refusing = ranks.size() - 1;
  for (int round = 0; round < 3; ++round) {
    ranks.rank(0).submit(allreduce_request("x"));
    ranks.rank(refusing).refuse("x", "no");
    ranks.settle();
    const auto text = fmt::format("x!rank {} refused x: no", refusing);
    EXPECT_THAT(ranks.story(0), ElementsAre(text));
    for (int rank = 1; rank < refusing; ++rank) ranks.rank(rank).submit(allreduce_request("x"));
    ranks.settle();
    for (int rank = 1; rank < refusing; ++rank) EXPECT_THAT(ranks.story(rank), ElementsAre(text));
    ranks.submit_everywhere(allreduce_request("x"));
    ranks.settle();
    for (int rank = 0; rank < ranks.size(); ++rank) EXPECT_THAT(ranks.story(rank), ElementsAre("x"));
  }
}

TEST_P(ManyRanks, GoOnWhenAllRefuse) {
  SimulatedNegotiation ranks(GetParam(), 16);
  for (int rank = 0; rank < ranks.size(); ++rank) ranks.rank(rank).refuse("x", "no");
  ranks.settle();
  ranks.submit_everywhere(allreduce_request("x"));
  ranks.settle();
  for (int rank = 0; rank < ranks.size(); ++rank) EXPECT_THAT(ranks.story(rank), ElementsAre("x"));
}

TEST_P(ManyRanks, FinishWithoutTheOnesThatHaveJoined) {
  SimulatedNegotiation ranks(GetParam(), 16);
  ranks.submit_everywhere(allreduce_request("x"));
  ranks.settle();
  for (int rank = 0; rank < ranks.size(); ++rank) ranks.story(rank);
  const int joined = ranks.size() - 1;
  ranks.rank(joined).join();
  for (int rank = 0; rank < joined; ++rank) ranks.rank(rank).submit(allreduce_request("x"));
  ranks.settle();
  for (int rank = 0; rank < ranks.size(); ++rank) {
    const auto decisions = ranks.decisions(rank);
    ASSERT_EQ(decisions.size(), 1U);
    EXPECT_EQ(decisions[0].contributors, ranks.size() - 1);
  }
  for (int rank = joined - 1; rank >= 0; --rank) {
    ranks.rank(rank).join();
    ranks.settle();
  }
  for (int rank = 0; rank < ranks.size(); ++rank) EXPECT_THAT(ranks.story(rank), ElementsAre("joined 0"));
  ranks.submit_everywhere(allreduce_request("x"));
  ranks.settle();
  EXPECT_EQ(ranks.decisions(0)[0].contributors, ranks.size());
}

TEST_P(ManyRanks, GoOnCountingUnnamedCallsFromTheMostThatOneHasMade) {
  SimulatedNegotiation ranks(GetParam(), 16);
  const auto allreduces = static_cast<std::size_t>(OpKind::allreduce);
  for (int epoch = 0; epoch < 2; ++epoch) {
    const int most = ranks.size() / 2;
    for (int rank = 0; rank < ranks.size(); ++rank) {
      UnnamedCalls calls = {};
      calls[allreduces] = 1000 * epoch + (rank == most ? 900 : rank);
      ranks.rank(rank).join(calls);
      if (ranks.random()() % 2 == 0) ranks.flush(rank);
    }
    ranks.settle();
    for (int rank = 0; rank < ranks.size(); ++rank) {
      const auto decisions = ranks.decisions(rank);
      ASSERT_EQ(decisions.size(), 1U);
      ASSERT_EQ(decisions[0].kind, Decision::Kind::all_joined);
      EXPECT_EQ(decisions[0].unnamed[allreduces], 1000 * epoch + 900) << "rank " << rank;
    }
  }
}

// Names are thrown out of the cache while bits for them are on their way.
TEST_P(ManyRanks, AgreeWithACacheThatIsTooSmall) {
  SimulatedNegotiation ranks(GetParam(), 3, 7);
  std::vector<std::vector<std::string>> pending(ranks.size());
  std::vector<std::map<std::string, int>> done(ranks.size());
  const auto take = [&](int rank) {
    for (const auto& name : ranks.story(rank)) {
      ++done[rank][name];
      std::erase(pending[rank], name);
    }
  };
  constexpr int kCalls = 30;
  std::vector<std::map<std::string, int>> called(ranks.size());
  for (bool left = true; left;) {
    left = false;
    for (int rank = 0; rank < ranks.size(); ++rank) {
      const std::string name = fmt::format("n{}", ranks.random()() % 8);
      const bool is_pending =
          std::find(pending[rank].begin(), pending[rank].end(), name) != pending[rank].end();
      if (!is_pending && called[rank][name] < kCalls) {
        ++called[rank][name];
        pending[rank].push_back(name);
        ranks.rank(rank).submit(allreduce_request(name));
      }
      if (ranks.random()() % 3 == 0) ranks.flush(rank);
      for (int i = 0; i < 8; ++i) ranks.deliver_one();
      for (int any = 0; any < ranks.size(); ++any) take(any);
      for (int n = 0; n < 8; ++n) left = left || called[rank][fmt::format("n{}", n)] < kCalls;
    }
  }
  ranks.settle();
  for (int rank = 0; rank < ranks.size(); ++rank) {
    take(rank);
    EXPECT_THAT(pending[rank], IsEmpty()) << "rank " << rank;
    for (int n = 0; n < 8; ++n) EXPECT_EQ(done[rank][fmt::format("n{}", n)], kCalls);
  }
}

// Each call has rows of its own, or those of the last time, so that some ranks announce it in full and others
// by a bit whose name has to leave meanwhile.
TEST_P(ManyRanks, CountEachCallOnceWithACacheThatIsTooSmall) {
  SimulatedNegotiation ranks(GetParam(), 3, 11);
  constexpr int kNames = 5, kCalls = 10;
  const auto rows_of = [](int rank, int name, int call) {
    return static_cast<std::int64_t>(std::mt19937(name + 10 * rank + 1000 * (call / 3 + rank % 2))() % 2);
  };
  std::vector<std::vector<int>> called(ranks.size(), std::vector<int>(kNames)), done = called;
  const auto take = [&](int rank) {
    for (const auto& decision : ranks.decisions(rank)) {
      ASSERT_EQ(decision.kind, Decision::Kind::execute) << decision.text;
      const int name = decision.request->name[0] - '0';
      const int call = done[rank][name]++;
      ASSERT_EQ(decision.contributors, ranks.size());
      for (int other = 0; other < ranks.size(); ++other)
        ASSERT_EQ(decision.rows[other], rows_of(other, name, call)) << "name " << name << ", call " << call;
      ASSERT_EQ(done[rank][name], called[rank][name]) << "rank " << rank << " has not called " << name;
    }
  };
  const auto are_left = [&] {
    return std::any_of(called.begin(), called.end(), [](const auto& calls) {
      return *std::min_element(calls.begin(), calls.end()) < kCalls;
    });
  };
  for (int turn = 0; are_left() && !HasFatalFailure(); ++turn) {
    const int rank = turn % ranks.size();
    const int name = static_cast<int>(ranks.random()() % kNames);
    if (called[rank][name] == done[rank][name] && called[rank][name] < kCalls) {
      const std::int64_t rows = rows_of(rank, name, called[rank][name]++);
      ranks.rank(rank).submit(request_of(OpKind::allgather, std::to_string(name), {rows}));
    }
    if (ranks.random()() % 3 == 0) ranks.flush(rank);
    for (int i = 0; i < 8; ++i) ranks.deliver_one();
    for (int any = 0; any < ranks.size(); ++any) take(any);
  }
  ranks.settle();
  for (int rank = 0; rank < ranks.size() && !HasFatalFailure(); ++rank) take(rank);
  for (int rank = 0; rank < ranks.size(); ++rank) EXPECT_EQ(done[rank], called[rank]);
}

TEST(Negotiator, AnswersNothingBeforeTheLastRankComes) {
  SimulatedNegotiation ranks(5, 16);
  for (int rank = 0; rank < 4; ++rank) ranks.rank(rank).submit(allreduce_request("x"));
  ranks.settle();
  for (int rank = 0; rank < 5; ++rank) EXPECT_THAT(ranks.story(rank), IsEmpty());
}

TEST(Negotiator, SendsNothingWithoutNews) {
  SimulatedNegotiation ranks(4, 16);
  ranks.settle();
  EXPECT_EQ(ranks.messages(), 0);
}

TEST(Negotiator, KeepsTheRowsOfEveryRank) {
  SimulatedNegotiation ranks(7, 16);
  for (int step = 0; step < 2; ++step) {
    for (int rank = 0; rank < 7; ++rank)
      ranks.rank(rank).submit(request_of(OpKind::allgather, "x", {rank, 3}));
    ranks.settle();
    for (int rank = 0; rank < 7; ++rank)
      EXPECT_THAT(ranks.decisions(rank)[0].rows, ElementsAre(0, 1, 2, 3, 4, 5, 6));
  }
  EXPECT_EQ(ranks.rank(6).counts().hits, 1);
  for (int rank = 0; rank < 7; ++rank) ranks.rank(rank).submit(request_of(OpKind::allgather, "x", {1, 3}));
  ranks.settle();
  EXPECT_THAT(ranks.decisions(5)[0].rows, ElementsAre(1, 1, 1, 1, 1, 1, 1));
}

TEST(Negotiator, KeepsTheRowsOfEveryMemberOfAGroup) {
  SimulatedNegotiation ranks(7, 16);
  std::vector<RequestPtr> requests;
  std::vector<std::int64_t> rows;
  for (int rank = 0; rank < 7; ++rank) {
    Request request = *request_of(OpKind::grouped_allgather, "x", {rank, 3});
    request.tensors.push_back({DType::i64, Shape{10 * rank}});
    requests.push_back(std::make_shared<const Request>(request));
    rows.insert(rows.end(), {rank, 10 * rank});
  }
  for (int step = 0; step < 3; ++step) {
    if (step == 2) {  // of one member of one rank
      Request request = *requests[5];
      request.tensors[1].shape = Shape{9};
      requests[5] = std::make_shared<const Request>(request);
      rows[11] = 9;
    }
    for (int rank = 0; rank < 7; ++rank) ranks.rank(rank).submit(requests[rank]);
    ranks.settle();
    for (int rank = 0; rank < 7; ++rank) {
      const auto decisions = ranks.decisions(rank);
      ASSERT_EQ(decisions.size(), 1U);
      EXPECT_EQ(decisions[0].rows, rows) << "step " << step;
    }
  }
  EXPECT_EQ(ranks.rank(5).counts().hits, 1);
  EXPECT_EQ(ranks.rank(6).counts().hits, 2);
}

TEST(Negotiator, LeavesUnnamedCallsOutOfTheCache) {
  SimulatedNegotiation ranks(2, 2);
  ranks.submit_everywhere(allreduce_request("kept"));
  ranks.settle();
  for (int i = 0; i < 5; ++i) {
    Request request = *allreduce_request(fmt::format("allreduce.noname.{}", i));
    request.named = false;
    ranks.submit_everywhere(std::make_shared<const Request>(request));
    ranks.settle();
  }
  ranks.submit_everywhere(allreduce_request("kept"));
  ranks.settle();
  EXPECT_EQ(ranks.rank(1).counts().hits, 1);
}

TEST(Negotiator, WorksWithoutACache) {
  SimulatedNegotiation ranks(3, 0);
  for (int step = 0; step < 2; ++step) {
    ranks.submit_everywhere(allreduce_request("x"));
    ranks.settle();
    EXPECT_THAT(ranks.story(2), ElementsAre("x"));
  }
  EXPECT_EQ(ranks.rank(2).counts().hits, 0);
}

// §5's rows, by what the texts say.
struct Case {
  RequestPtr a, b;
  std::string text;
};
class Disagreement : public testing::TestWithParam<Case> {};

RequestPtr with(RequestPtr request, const std::function<void(Request&)>& change) {
  Request changed = *request;
  change(changed);
  return std::make_shared<const Request>(changed);
}

INSTANTIATE_TEST_SUITE_P(
    Negotiator, Disagreement,
    testing::Values(
        Case{allreduce_request("x"), allreduce_request("x", {4}, DType::f64),
             "Mismatched data types for x: rank 0 has float32, rank 2 has float64"},
        Case{allreduce_request("x", {17}), allreduce_request("x", {18}),
             "Mismatched shapes for x: rank 0 has [17], rank 2 has [18]"},
        Case{request_of(OpKind::allgather, "x", {5, 3}), request_of(OpKind::allgather, "x", {5, 4}),
             "Mismatched shapes for x beyond dimension 0: rank 0 has [5,3], rank 2 has [5,4]"},
        Case{allreduce_request("x"), request_of(OpKind::allgather, "x"),
             "Mismatched operations for x: rank 0 allreduce, rank 2 allgather"},
        Case{allreduce_request("x"),
             with(allreduce_request("x"), [](Request& r) { r.reduction = ReduceOp::max; }),
             "Mismatched reduction for x: rank 0 has sum, rank 2 has max"},
        Case{allreduce_request("x"),
             with(allreduce_request("x"), [](Request& r) { r.reduction.prescale = 0.5; }),
             "Mismatched reduction for x: rank 0 has sum, rank 2 has sum with scales 0.5 and 1"},
        Case{request_of(OpKind::broadcast, "x", {1}, 0), request_of(OpKind::broadcast, "x", {1}, 1),
             "Mismatched root ranks for x: rank 0 says 0, rank 2 says 1"},
        Case{allreduce_request("x"), with(allreduce_request("x"), [](Request& r) { r.device = "gpu"; }),
             "Mismatched devices for x: rank 0 has cpu, rank 2 has gpu"},
        Case{with(request_of(OpKind::grouped_allreduce, "x"), [](Request& r) { r.tensors.resize(2); }),
             request_of(OpKind::grouped_allreduce, "x"),
             "Mismatched groups for x: rank 0 has 2 members, rank 2 has 1 members"},
        Case{request_of(OpKind::process_set, "x"),
             with(request_of(OpKind::process_set, "x"), [](Request& r) { r.payload = "make 1,3"; }),
             "Mismatched process sets for x: rank 0 has , rank 2 has make 1,3"}));

TEST_P(Disagreement, IsToldToEveryRank) {
  SimulatedNegotiation ranks(3, 16);
  ranks.rank(0).submit(GetParam().a);
  ranks.rank(1).submit(GetParam().a);
  ranks.rank(2).submit(GetParam().b);
  ranks.settle();
  for (int rank = 0; rank < 3; ++rank) EXPECT_THAT(ranks.story(rank), ElementsAre("x!" + GetParam().text));
}

// Also where the others announce it by a bit that stands for the last one.
TEST(Negotiator, TakesTheShapeOfAScatterFromItsRoot) {
  for (const int root : {0, 1, 6}) {
    SimulatedNegotiation ranks(7, 16);
    for (const int rows : {6, 6, 9, 9, 3}) {
      for (int rank = 0; rank < 7; ++rank)
        ranks.rank(rank).submit(with(request_of(OpKind::scatter, "x", {rows}, root), [&](Request& r) {
          if (rank != root) r.tensors.clear();
        }));
      ranks.settle();
      for (int rank = 0; rank < 7; ++rank) {
        const auto decisions = ranks.decisions(rank);
        ASSERT_EQ(decisions.size(), 1U);
        ASSERT_EQ(decisions[0].kind, Decision::Kind::execute) << decisions[0].text;
        EXPECT_EQ(decisions[0].request->tensors[0].shape, Shape({rows})) << "root " << root;
      }
    }
  }
}

TEST(Negotiator, RefusesABroadcastWhileARankHasJoined) {
  SimulatedNegotiation ranks(3, 16);
  ranks.rank(2).join();
  for (int rank = 0; rank < 2; ++rank) ranks.rank(rank).submit(request_of(OpKind::broadcast, "x", {1}, 0));
  ranks.settle();
  for (int rank = 0; rank < 2; ++rank)
    EXPECT_THAT(ranks.story(rank),
                ElementsAre(HasSubstr("broadcast x is not supported while rank 2 has joined")));
}

TEST(Negotiator, CountsWhatARankSubmittedBeforeItJoined) {
  SimulatedNegotiation ranks(6, 16);
  for (int rank = 0; rank < 6; ++rank) {
    ranks.rank(rank).submit(allreduce_request("x"));
    ranks.rank(rank).join();
  }
  ranks.settle();
  for (int rank = 0; rank < 6; ++rank) {
    const auto decisions = ranks.decisions(rank);
    ASSERT_EQ(decisions.size(), 2U);
    EXPECT_EQ(decisions[0].contributors, 6);
    EXPECT_EQ(decisions[1].kind, Decision::Kind::all_joined);
  }
}

TEST(Negotiator, TellsAllThatARankHasGone) {
  SimulatedNegotiation ranks(6, 16);
  ranks.rank(0).gone(5);
  ranks.settle();
  for (int rank = 0; rank < 6; ++rank) EXPECT_THAT(ranks.story(rank), ElementsAre("gone 5"));
}

// Some wait for it in the middle of an operation.
TEST(Negotiator, TellsAllThatTheCommunicationOfOneHasFailed) {
  SimulatedNegotiation ranks(6, 16);
  ranks.rank(5).give_up(Code::unavailable, "no route");
  ranks.settle();
  for (int rank = 0; rank < 6; ++rank) {
    ranks.rank(rank).submit(allreduce_request("x"));
    EXPECT_THAT(ranks.story(rank), ElementsAre("broken no route"));
  }
  ranks.settle();
  for (int rank = 0; rank < 6; ++rank) EXPECT_THAT(ranks.story(rank), IsEmpty());
}

TEST(Negotiator, EndsForAllWhenTheRootSaysSo) {
  SimulatedNegotiation ranks(6, 16);
  ranks.rank(0).end(Code::deadline_exceeded, "late");
  ranks.settle();
  for (int rank = 0; rank < 6; ++rank) EXPECT_THAT(ranks.story(rank), ElementsAre("end late"));
}

}  // namespace
}  // namespace kolo::detail
