#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <kolo/core/runtime/trace.h>

namespace kolo {
namespace {

using nlohmann::json;
using std::chrono::microseconds;
using std::chrono::nanoseconds;

StepTrace trace_of_two_lanes() {
  const auto start = std::chrono::steady_clock::now();
  StepTrace trace;
  trace.events = {
      {"fc/\"matmul\"", "MatMul", "CPU:0 thread 1", start + microseconds(10), start + microseconds(30)},
      {"bucket 0", "reduce", "communication", start, start + nanoseconds(1500)},
      {"relu", "Relu", "CPU:0 thread 1", start + microseconds(30), start + microseconds(31)},
  };
  return trace;
}

// Events of one phase: "X" is something that took time, "M" names a lane or process.
std::vector<json> events(const std::string& phase, int rank) {
  std::vector<json> found;
  const json trace = json::parse(chrome_trace_json(trace_of_two_lanes(), rank));
  for (const json& event : trace.at("traceEvents"))
    if (event.at("ph") == phase) found.push_back(event);
  return found;
}

TEST(ChromeTrace, CountsMicrosecondsFromTheFirstEventOn) {
  const auto spans = events("X", 0);
  ASSERT_EQ(spans.size(), 3u);
  EXPECT_DOUBLE_EQ(spans[0].at("ts"), 10);
  EXPECT_DOUBLE_EQ(spans[0].at("dur"), 20);
  EXPECT_DOUBLE_EQ(spans[1].at("ts"), 0);
  EXPECT_DOUBLE_EQ(spans[1].at("dur"), 1.5);
}

TEST(ChromeTrace, KeepsNamesAndCategories) {
  const auto spans = events("X", 0);
  EXPECT_EQ(spans.at(0).at("name"), "fc/\"matmul\"");
  EXPECT_EQ(spans.at(0).at("cat"), "MatMul");
  EXPECT_EQ(spans.at(1).at("cat"), "reduce");
}

TEST(ChromeTrace, PutsEachLaneInARowOfItsOwn) {
  const auto spans = events("X", 0);
  EXPECT_EQ(spans.at(0).at("tid"), spans.at(2).at("tid"));
  EXPECT_NE(spans.at(0).at("tid"), spans.at(1).at("tid"));
}

TEST(ChromeTrace, NamesProcessAndLanesOnce) {
  std::string names;
  for (const json& event : events("M", 3)) names += event.at("args").at("name").get<std::string>() + "; ";
  EXPECT_EQ(names, "rank 3; CPU:0 thread 1; communication; ");
}

TEST(ChromeTrace, HasTheRankAsProcess) {
  for (const char* phase : {"X", "M"})
    for (const json& event : events(phase, 3)) EXPECT_EQ(event.at("pid"), 3);
}

TEST(ChromeTrace, OfNoEventsIsStillATrace) {
  const json trace = json::parse(chrome_trace_json({}, 0));
  EXPECT_EQ(trace.at("traceEvents").size(), 1u);
}

}  // namespace
}  // namespace kolo
