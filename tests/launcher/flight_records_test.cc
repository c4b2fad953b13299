#include <kolo/launcher/flight_records.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <stdexcept>

#include <kolo/core/base/error.h>

#include "tests/core/training/temporary_directory.h"

namespace kolo::launcher {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

FlightOperation operation(std::int64_t ticket, const std::string& name, const std::string& state,
                          const std::string& shape = "[3]") {
  return {.sequence = ticket,
          .channel = 1,
          .ticket = ticket,
          .name = name,
          .kind = "allreduce",
          .shape = shape,
          .dtype = "float32",
          .state = state,
          .bytes = 12,
          .process_set = 0,
          .submitted = 100.0 + static_cast<double>(ticket)};
}

FlightRecord record(int rank, std::vector<FlightOperation> operations) {
  return {.rank = rank,
          .size = 3,
          .host = "h",
          .reason = "",
          .written = 200,
          .operations = std::move(operations)};
}

TEST(FlightRecords, DoNotPartWhereAllHaveFinishedTheSame) {
  const auto same = [](int rank) {
    return record(rank, {operation(0, "a", "finished"), operation(1, "b", "finished")});
  };
  EXPECT_EQ(first_divergence({same(0), same(1), same(2)}), "");
}

TEST(FlightRecords, PartAtTheFirstOperationThatDiffers) {
  EXPECT_EQ(first_divergence({record(0, {operation(0, "a", "finished"), operation(1, "b", "started")}),
                              record(1, {operation(0, "a", "finished"), operation(1, "b", "started", "[4]")}),
                              record(2, {operation(0, "a", "finished"), operation(1, "b", "started")})}),
            "the ranks entered different operations: allreduce \"b\" float32 [3] (12 bytes) on ranks [0,2], "
            "allreduce \"b\" float32 [4] (12 bytes) on ranks [1]");
}

TEST(FlightRecords, PartWhereARankHasNotEntered) {
  EXPECT_EQ(first_divergence({record(0, {operation(0, "a", "finished"), operation(1, "b", "started")}),
                              record(1, {operation(0, "a", "finished")})}),
            "allreduce \"b\" float32 [3] (12 bytes): started on ranks [0], not entered on ranks [1]");
}

TEST(FlightRecords, AskNothingOfRanksOutsideAProcessSet) {
  const auto of_set = [](std::int64_t ticket, const std::string& name, const std::string& state) {
    auto one = operation(ticket, name, state);
    one.channel = 65536;
    one.process_set = 1;
    return one;
  };
  const auto all = operation(0, "all", "finished");
  const auto outside = record(1, {all});
  EXPECT_EQ(first_divergence({record(0, {all, of_set(0, "a", "finished")}), outside,
                              record(2, {all, of_set(0, "a", "finished")})}),
            "");
  EXPECT_THAT(first_divergence({record(0, {all, of_set(0, "a", "finished"), of_set(1, "b", "started")}),
                                outside, record(2, {all, of_set(0, "a", "finished")})}),
              HasSubstr("started on ranks [0], not entered on ranks [2]"));
}

TEST(FlightRecords, PartByNameWhereTheRanksHadAgreedOnNothing) {
  auto waiting = operation(-1, "g", "submitted");
  EXPECT_EQ(
      first_divergence({record(0, {waiting}), record(1, {}), record(2, {waiting})}),
      "\"g\": submitted (allreduce \"g\" float32 [3] (12 bytes)) on ranks [0,2], not submitted on ranks [1]");
}

TEST(FlightRecords, DoNotPartWhereTheOtherRankHasPushedTheOperationOut) {
  auto late = operation(500, "z", "finished");
  EXPECT_EQ(first_divergence({record(0, {operation(0, "a", "finished"), late}), record(1, {late})}), "");
}

TEST(FlightRecords, NameTheRanksWithoutARecord) {
  const auto summary = flight_summary({record(0, {}), record(2, {})});
  EXPECT_EQ(summary["missing"].dump(), "[1]");
}

TEST(FlightRecords, RefuseAJobOfMoreRanksThanThereAre) {
  const TemporaryDirectory folder;
  for (const char* identity :
       {R"("rank":0,"size":2147483647)", R"("rank":-1,"size":2)", R"("rank":2,"size":2)"}) {
    std::ofstream(folder / "kolo-flight.0.json")
        << "{" << identity << R"(,"host":"h","reason":"","written":1,"operations":[]})";
    EXPECT_THAT([&] { read_flight_records({folder.path()}); },
                ThrowsMessage<DataLossError>(HasSubstr("is no flight record: it is of rank")));
  }
}

// A folder in which jobs have left what their ranks wrote.
class FlightFolder : public testing::Test {
 protected:
  void write(int rank, int size, double written, const std::string& job) {
    const std::string of_job = job.empty() ? "" : fmt::format(R"(,"job":"{}")", job);
    std::ofstream(file(rank)) << fmt::format(
        R"({{"rank":{},"size":{},"host":"h"{},"reason":"","written":{},"operations":[]}})", rank, size,
        of_job, written);
  }
  std::string file(int rank) const { return folder_ / fmt::format("kolo-flight.{}.json", rank); }
  std::vector<int> ranks_read() const {
    std::vector<int> ranks;
    for (const auto& record : read_flight_records({folder_.path()}).records) ranks.push_back(record.rank);
    return ranks;
  }
  const TemporaryDirectory folder_;
};

// Rank 1 of the first job was killed, rank 0 of the second.
TEST_F(FlightFolder, GivesTheRecordsOfTheLastJobAndNamesTheOthers) {
  write(0, 2, 100, "b7");
  write(1, 2, 200, "a9");
  EXPECT_THAT(ranks_read(), ElementsAre(1));
  EXPECT_THAT(read_flight_records({folder_.path()}).left_out, ElementsAre(file(0)));
}

TEST_F(FlightFolder, GivesAllRecordsOfTheLastJobWheneverTheyWereWritten) {
  write(0, 3, 100, "a9");
  write(1, 3, 150, "b7");
  write(2, 3, 200, "a9");
  EXPECT_THAT(ranks_read(), ElementsAre(0, 2));
}

TEST_F(FlightFolder, MayHoldRecordsOfAnEarlierJobOfMoreRanks) {
  write(0, 2, 200, "a9");
  write(1, 2, 201, "a9");
  write(2, 3, 100, "b7");
  EXPECT_THAT(ranks_read(), ElementsAre(0, 1));
}

TEST_F(FlightFolder, TakesRecordsThatNameNoJobForOneJobs) {
  write(0, 2, 100, "");
  write(1, 2, 200, "");
  EXPECT_THAT(ranks_read(), ElementsAre(0, 1));
  write(1, 3, 200, "");
  EXPECT_THAT([&] { ranks_read(); }, ThrowsMessage<InvalidArgumentError>(
                                         AllOf(HasSubstr("of a job of 2 ranks"), HasSubstr(file(1)))));
  write(1, 3, 200, "a9");
  EXPECT_THAT(ranks_read(), ElementsAre(1));
}

// Root reads every folder.
class AsNobody {
 public:
  AsNobody() {
    if (geteuid() == 0 && seteuid(65534) != 0) throw std::runtime_error("seteuid failed");
  }
  ~AsNobody() {
    if (seteuid(getuid()) != 0) std::abort();
  }
};

TEST_F(FlightFolder, IsRefusedWithItsNameWhereItMayNotBeRead) {
  chmod(folder_.path().c_str(), 0);
  EXPECT_THAT(
      [&] {
        const AsNobody nobody;
        ranks_read();
      },
      ThrowsMessage<FailedPreconditionError>(
          fmt::format("cannot read {}: Permission denied", folder_.path())));
  chmod(folder_.path().c_str(), 0700);
}

TEST_F(FlightFolder, IsRefusedWhereItsNameIsTooLong) {
  EXPECT_THAT(
      [&] { read_flight_records({std::string(300, 'x')}); },
      ThrowsMessage<UnknownError>(AllOf(HasSubstr("cannot read xxx"), HasSubstr("File name too long"))));
}

TEST(FlightRecords, RefuseAFolderThatIsNotThere) {
  EXPECT_THAT([&] { read_flight_records({"/no/such/folder"}); },
              ThrowsMessage<NotFoundError>("/no/such/folder cannot be read"));
}

TEST(FlightRecords, RefuseAFolderWithoutRecords) {
  const TemporaryDirectory folder;
  EXPECT_THAT([&] { read_flight_records({folder.path()}); },
              ThrowsMessage<NotFoundError>(HasSubstr("there is no kolo-flight.<rank>.json in")));
}

}  // namespace
}  // namespace kolo::launcher
