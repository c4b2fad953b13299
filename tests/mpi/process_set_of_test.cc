// Process sets of the program's own communicators.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include <kolo/collectives/engine/eager.h>
#include <kolo/collectives/job/init.h>
#include <kolo/collectives/job/mpi_interop.h>
#include <kolo/core/base/error.h>

namespace kolo {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

// MPI is called by the test's thread, beside kolo's: init() asked for MPI_THREAD_MULTIPLE.
class ProcessSetOf : public testing::Test {
 protected:
  void SetUp() override {
    int level = 0;
    MPI_Query_thread(&level);
    if (level < MPI_THREAD_MULTIPLE) GTEST_SKIP() << "this MPI serves one thread only";
  }
  void TearDown() override {
    for (MPI_Comm& comm : comms_) MPI_Comm_free(&comm);
  }
  // Of the ranks that give the same color, by key; MPI_COMM_NULL for MPI_UNDEFINED.
  MPI_Comm split(int color, int key) {
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Comm_split(MPI_COMM_WORLD, color, key, &comm);
    if (comm != MPI_COMM_NULL) comms_.push_back(comm);
    return comm;
  }

  std::vector<MPI_Comm> comms_;
};

std::vector<int> backwards(int first, int step) {
  std::vector<int> ranks;
  for (int r = size() - 1; r >= 0; --r)
    if (r % step == first) ranks.push_back(r);
  return ranks;
}

TEST_F(ProcessSetOf, HasTheRanksOfTheCommunicatorInItsOrder) {
  const auto set = process_set_of(split(rank() % 2, -rank()));
  ASSERT_TRUE(set.has_value());
  EXPECT_EQ(set->ranks(), backwards(rank() % 2, 2));
}

TEST_F(ProcessSetOf, ReducesAmongItsRanks) {
  const auto set = process_set_of(split(rank() % 2, rank()));
  std::vector<float> values = {static_cast<float>(rank())};
  allreduce(std::span(values), ReduceOp::sum, {.process_set = set.value()});
  float expected = 0;
  for (const int member : set->ranks()) expected += static_cast<float>(member);
  EXPECT_EQ(values[0], expected);
}

TEST_F(ProcessSetOf, OfAllRanksIsTheSetOfAllRanks) {
  EXPECT_EQ(process_set_of(MPI_COMM_WORLD), ProcessSet());
}

TEST_F(ProcessSetOf, IsTheSameSetForTheSameRanks) {
  const auto first = process_set_of(split(rank() % 2, -rank()));
  EXPECT_EQ(process_set_of(split(rank() % 2, -rank())), first);
  EXPECT_EQ(ProcessSet::split(rank() % 2, -rank()), first.value());
}

TEST_F(ProcessSetOf, BringsNothingToARankWithoutACommunicator) {
  if (size() == 1) GTEST_SKIP() << "nobody would bring any";
  const auto set = process_set_of(split(rank() == 0 ? MPI_UNDEFINED : 0, rank()));
  EXPECT_EQ(set.has_value(), rank() != 0);
  if (set) {
    EXPECT_EQ(set->size(), size() - 1);
  }
}

TEST_F(ProcessSetOf, RefusesToMakeOneOfNothing) {
  EXPECT_THAT([] { process_set_of(MPI_COMM_NULL); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("every rank gave MPI_COMM_NULL")));
}

}  // namespace
}  // namespace kolo
