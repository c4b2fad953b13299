#include <kolo/collectives/progress/flight_recorder.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include <nlohmann/json.hpp>

#include "tests/core/training/temporary_directory.h"

namespace kolo {
namespace {

using Json = nlohmann::json;
using testing::ElementsAre;

OperationDetails named(std::string_view name) {
  return {.name = name, .kind = "allreduce", .shape = "[3]", .dtype = DType::f32, .bytes = 12};
}

std::vector<std::string> names_in(const FlightRecorder& recorder) {
  std::vector<std::string> names;
  const Json record = Json::parse(recorder.json(""));
  for (const auto& operation : record["operations"]) names.push_back(operation["name"]);
  return names;
}

TEST(FlightRecorder, KeepsTheLastOperationsOldestFirst) {
  FlightRecorder recorder(3);
  for (const char* name : {"a", "b", "c", "d", "e"}) recorder.submitted(named(name));
  EXPECT_THAT(names_in(recorder), ElementsAre("c", "d", "e"));
}

TEST(FlightRecorder, TellsHowFarEachOperationIs) {
  FlightRecorder recorder;
  const auto submitted = recorder.submitted(named("submitted"));
  const auto started = recorder.submitted(named("started"));
  const auto finished = recorder.submitted(named("finished"));
  const auto failed = recorder.submitted(named("failed"));
  recorder.agreed(submitted, 2, 7);
  for (const auto operation : {started, finished, failed}) recorder.started(operation);
  recorder.finished(finished, false);
  recorder.finished(failed, true);
  const Json operations = Json::parse(recorder.json("why"))["operations"];
  for (const auto& operation : operations) EXPECT_EQ(operation["state"], operation["name"]);
  EXPECT_EQ(operations[0]["channel"], 2);
  EXPECT_EQ(operations[0]["ticket"], 7);
  EXPECT_EQ(operations[1]["dtype"], "float32");
  EXPECT_LE(operations[2]["submitted"].get<double>(), operations[2]["ended"].get<double>());
  EXPECT_EQ(recorder.pending(), 2);
}

TEST(FlightRecorder, ForgetsNothingItCountsWhenNewOperationsPushOldOnesOut) {
  FlightRecorder recorder(1);
  const auto first = recorder.submitted(named("first"));
  recorder.submitted(named("second"));
  recorder.finished(first, false);
  EXPECT_EQ(recorder.pending(), 1);
  EXPECT_EQ(recorder.ended(), 1);
  EXPECT_THAT(names_in(recorder), ElementsAre("second"));
}

TEST(FlightRecorder, WritesItsRankItsJobAndTheReasonToTheFolder) {
  const TemporaryDirectory folder;
  FlightRecorder recorder;
  EXPECT_EQ(recorder.write("nothing to tell"), "");
  recorder.set_identity({.rank = 3, .size = 4, .host = "node7", .folder = folder.path(), .job = "a9"});
  recorder.submitted(named("g"));
  EXPECT_EQ(recorder.write("SIGUSR2"), folder / "kolo-flight.3.json");
  const Json record = Json::parse(bytes_of_file(folder / "kolo-flight.3.json"));
  EXPECT_EQ(record["rank"], 3);
  EXPECT_EQ(record["size"], 4);
  EXPECT_EQ(record["host"], "node7");
  EXPECT_EQ(record["job"], "a9");
  EXPECT_EQ(record["reason"], "SIGUSR2");
}

// In the folder for temporary files, where others may have put something of the name.
class TemporaryFlightRecord : public testing::Test {
 protected:
  TemporaryFlightRecord() {
    setenv("TMPDIR", folder_.path().c_str(), 1);
    setenv("OMPI_MCA_ess_base_jobid", "77", 1);
    std::filesystem::create_directory(others_);
  }
  ~TemporaryFlightRecord() override {
    unsetenv("TMPDIR");
    unsetenv("OMPI_MCA_ess_base_jobid");
  }
  std::string write() const {
    FlightRecorder recorder;
    recorder.set_identity({.rank = 1, .size = 2, .host = "h", .folder = "", .job = ""});
    recorder.submitted(named("g"));
    return recorder.write("test");
  }
  TemporaryDirectory folder_;
  const std::filesystem::path own_ = std::filesystem::path(folder_.path()) / "kolo-flight-77",
                              others_ = std::filesystem::path(folder_.path()) / "others";
};

TEST_F(TemporaryFlightRecord, LiesInAFolderThatNobodyElseReads) {
  EXPECT_EQ(write(), (own_ / "kolo-flight.1.json").string());
  EXPECT_EQ(std::filesystem::status(own_).permissions(), std::filesystem::perms::owner_all);
}

TEST_F(TemporaryFlightRecord, FollowsNoLinkOfSomebodyElse) {
  std::filesystem::create_symlink(others_, own_);
  EXPECT_EQ(write(), "");
  std::filesystem::remove(own_);
  std::filesystem::create_directory(own_);
  std::filesystem::permissions(own_, std::filesystem::perms::all);
  EXPECT_EQ(write(), "");
  EXPECT_TRUE(std::filesystem::is_empty(others_));
  EXPECT_TRUE(std::filesystem::is_empty(own_));
}

TEST_F(TemporaryFlightRecord, ReplacesALinkInPlaceOfItsFile) {
  std::filesystem::create_directory(own_);
  std::filesystem::permissions(own_, std::filesystem::perms::owner_all);
  std::ofstream(others_ / "victim") << "precious";
  std::filesystem::create_symlink(others_ / "victim", own_ / "kolo-flight.1.json.unfinished");
  std::filesystem::create_symlink(others_ / "victim", own_ / "kolo-flight.1.json");
  EXPECT_NE(write(), "");
  EXPECT_EQ(std::filesystem::file_size(others_ / "victim"), 8U);
}

TEST(FlightRecorder, SaysNothingWhereItCannotWrite) {
  FlightRecorder recorder;
  recorder.set_identity({.folder = "/proc/no/such/folder"});
  recorder.submitted(named("g"));
  EXPECT_EQ(recorder.write("error"), "");
}

TEST(FlightRecorder, TakesOperationsOfSeveralThreads) {
  FlightRecorder recorder;
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&] {
        for (int i = 0; i < 1000; ++i) {
          const auto operation = recorder.submitted(named("x"));
          recorder.started(operation);
          recorder.finished(operation, false);
          if (i % 100 == 0) recorder.json("meanwhile");
        }
      });
  }
  EXPECT_EQ(recorder.ended(), 4000);
  EXPECT_EQ(recorder.pending(), 0);
}

}  // namespace
}  // namespace kolo
