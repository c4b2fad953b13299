#include <kolo/core/summary/summary_writer.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include <kolo/core/base/error.h>
#include <kolo/core/graph/scope.h>
#include <kolo/core/ops/basic.h>

#include "tests/core/summary/read_events.h"
#include "tests/core/training/temporary_directory.h"

namespace kolo {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;
using testing::ThrowsMessage;

constexpr char kVersion[] = R"({"step":0,"file_version":"brain.Event:2"})";

class Writer : public testing::Test {
 protected:
  std::vector<std::string> events() {
    writer_.flush();
    return read_events(writer_.path());
  }
  std::string only_event() {
    const std::vector<std::string> all = events();
    return all.size() == 2 ? all[1] : "not one event";
  }
  TemporaryDirectory folder_;
  SummaryWriter writer_{folder_.path()};
};

TEST_F(Writer, MakesNoFileBeforeTheFirstEvent) {
  writer_.flush();
  writer_.close();
  EXPECT_THAT(folder_.names(), IsEmpty());
}

TEST_F(Writer, NamesItsFileAsTensorBoardLooksForIt) {
  writer_.add_summary(scalar_summary("loss", 0.5), 3);
  EXPECT_THAT(writer_.path(), StartsWith(folder_ / "events.out.tfevents."));
}

TEST_F(Writer, WritesScalarsBehindTheVersion) {
  writer_.add_summary(scalar_summary("loss", 0.5), 3);
  writer_.add_summary(scalar_summary("loss", 0.25), std::int64_t{1} << 40);
  EXPECT_THAT(events(), ElementsAre(kVersion, R"({"step":3,"values":[{"tag":"loss","scalar":0.5}]})",
                                    R"({"step":1099511627776,"values":[{"tag":"loss","scalar":0.25}]})"));
}

// Limits: 1e-12 · 1.1^k, multiplied one after another.
TEST_F(Writer, CountsAHistogramInBucketsThatGrowByATenth) {
  writer_.add_summary(histogram_summary("h", Tensor::of<float>({4}, {0, 1, 1, -2})), 0);
  const std::string event = only_event();
  EXPECT_THAT(event, HasSubstr(R"("min":-2.0,"max":1.0,"num":4.0,"sum":0.0,"squares":6.0)"));
  // Below −2, −2, up to 0, 0, up to 1, 1, above.
  EXPECT_THAT(event, HasSubstr(R"("counts":[0.0,1.0,0.0,1.0,0.0,2.0,0.0])"));
  EXPECT_THAT(event, HasSubstr(R"("limits":[-2)"));
}

TEST_F(Writer, RefusesAHistogramOfWhatIsNotFinite) {
  EXPECT_THAT([] { histogram_summary("h", Tensor::scalar(std::nanf(""))); },
              ThrowsMessage<InvalidArgumentError>("Nan in summary histogram for: h"));
  EXPECT_THAT([] { histogram_summary("h", Tensor::scalar(HUGE_VAL)); },
              ThrowsMessage<InvalidArgumentError>("Infinity in summary histogram for: h"));
}

TEST_F(Writer, WritesBytesAsImages) {
  writer_.add_summary(image_summary("x", Tensor::of<std::uint8_t>({1, 2, 1, 3}, {1, 2, 3, 4, 5, 6}), 1), 1);
  EXPECT_EQ(only_event(),
            R"({"step":1,"values":[{"tag":"x/image","image":{"height":2,"width":1,"colorspace":3,)"
            R"("rows":[[1,2,3],[4,5,6]]}}]})");
}

TEST_F(Writer, ScalesEachImageOfNumbersByItselfAndMarksWhatIsNotFinite) {
  const float nan = std::nanf("");
  writer_.add_summary(image_summary("x", Tensor::of<float>({3, 1, 2, 1}, {0, 2, -1, 0.5f, nan, 1})), 1);
  const std::string event = only_event();
  EXPECT_THAT(
      event, HasSubstr(R"("tag":"x/image/0","image":{"height":1,"width":2,"colorspace":1,"rows":[[0,255]])"));
  EXPECT_THAT(
      event, HasSubstr(R"("tag":"x/image/1","image":{"height":1,"width":2,"colorspace":1,"rows":[[1,191]])"));
  EXPECT_THAT(
      event,
      HasSubstr(R"("tag":"x/image/2","image":{"height":1,"width":2,"colorspace":1,"rows":[[255,255]])"));
}

TEST_F(Writer, RefusesWhatIsNoBatchOfImages) {
  EXPECT_THAT(
      [] {
        image_summary("x", Tensor::zeros(DType::f32, {1, 2, 2, 2}));
      },
      ThrowsMessage<InvalidArgumentError>("Tensor must be 4-D with last dim 1, 3, or 4, not [1,2,2,2]"));
}

// What it is to be shown with stands in the first summary of a tag alone.
TEST_F(Writer, WritesTextsWithTheirPluginOnce) {
  writer_.add_summary(text_summary("note", "# a"), 1);
  writer_.add_summary(text_summary("note", Tensor::of<std::string>({2}, {"b", "c"})), 2);
  EXPECT_THAT(
      events(),
      ElementsAre(
          kVersion,
          R"({"step":1,"values":[{"tag":"note","plugin":"text","tensor":{"dtype":7,"shape":[],"texts":["# a"]}}]})",
          R"({"step":2,"values":[{"tag":"note","tensor":{"dtype":7,"shape":[2],"texts":["b","c"]}}]})"));
}

TEST_F(Writer, MergesSummariesOfDifferentTags) {
  const SummaryBytes a = scalar_summary("a", 1), b = scalar_summary("b", 2);
  writer_.add_summary(merge_summaries(std::vector{a, b}), 1);
  EXPECT_EQ(only_event(), R"({"step":1,"values":[{"tag":"a","scalar":1.0},{"tag":"b","scalar":2.0}]})");
  EXPECT_THAT(
      [&] {
        merge_summaries(std::vector{a, a});
      },
      ThrowsMessage<InvalidArgumentError>("Duplicate tag a found in summary inputs"));
}

TEST_F(Writer, WritesTheGraphAndTheSessionsLog) {
  Graph graph;
  const Scope s(graph);
  identity(s.named("y"), constant(s.named("x"), 1.0f));
  writer_.add_graph(graph);
  writer_.add_session_log(SessionStatus::checkpoint, 4, "ck/model.ckpt-4");
  EXPECT_THAT(events(),
              ElementsAre(kVersion, R"({"step":0,"graph":[["x","Const",[]],["y","Identity",["x"]]]})",
                          R"({"step":4,"session":[3,"ck/model.ckpt-4"]})"));
}

TEST_F(Writer, BeginsWithTheGraphThatItIsGiven) {
  Graph graph;
  const Scope s(graph);
  constant(s.named("x"), 1.0f);
  SummaryWriter writer(folder_ / "run", graph);
  writer.flush();
  EXPECT_THAT(read_events(writer.path()), ElementsAre(kVersion, R"({"step":0,"graph":[["x","Const",[]]]})"));
}

TEST_F(Writer, TakesATagOfARunOnce) {
  writer_.add_run_metadata("", "step_1", 1);
  EXPECT_EQ(only_event(), R"({"step":1,"run":"step_1"})");
  EXPECT_THAT([&] { writer_.add_run_metadata("", "step_1", 2); },
              ThrowsMessage<InvalidArgumentError>(
                  HasSubstr("The provided tag was already used for this event type")));
}

TEST_F(Writer, RefusesBytesThatAreNoMessage) {
  EXPECT_THROW(writer_.add_summary(SummaryBytes("\xff")), InvalidArgumentError);
  EXPECT_THROW(writer_.add_event("\xff"), InvalidArgumentError);
  EXPECT_THAT(folder_.names(), IsEmpty());
}

TEST_F(Writer, DropsWhatComesAfterItsCloseUntilItIsReopened) {
  writer_.add_summary(scalar_summary("a", 1), 1);
  const std::string first = writer_.path();
  writer_.close();
  testing::internal::CaptureStderr();
  writer_.add_summary(scalar_summary("a", 2), 2);
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("Attempting to use a closed FileWriter. The operation will be a noop"));
  writer_.reopen();
  writer_.add_summary(scalar_summary("a", 3), 3);
  EXPECT_EQ(only_event(), R"({"step":3,"values":[{"tag":"a","scalar":3.0}]})");
  EXPECT_EQ(read_events(first).size(), 2u);
  EXPECT_EQ(folder_.names().size(), 2u);
}

TEST(WriterQueue, WritesWhereMoreEventsWaitThanItMayHold) {
  const TemporaryDirectory folder;
  SummaryWriter writer(folder.path(), {.max_queue = 2});
  for (int i = 0; i < 2; ++i) writer.add_summary(scalar_summary("a", i), i);
  EXPECT_EQ(std::filesystem::file_size(writer.path()), 0u);
  writer.add_summary(scalar_summary("a", 2), 2);
  EXPECT_EQ(read_events(writer.path()).size(), 4u);
}

TEST(WriterQueue, WritesAtOnceWhereItIsToFlushAlways) {
  const TemporaryDirectory folder;
  SummaryWriter writer(folder.path(), {.flush_secs = 0, .filename_suffix = ".eval"});
  writer.add_summary(scalar_summary("a", 1), 1);
  EXPECT_EQ(read_events(writer.path()).size(), 2u);
  EXPECT_THAT(writer.path(), testing::EndsWith(".eval"));
}

TEST(WriterQueue, NamesAFolderThatIsAFile) {
  const TemporaryDirectory folder;
  write_bytes(folder / "file", "");
  EXPECT_THAT([&] { SummaryWriter(folder / "file/events"); },
              ThrowsMessage<Error>(HasSubstr(folder / "file")));
}

}  // namespace
}  // namespace kolo
