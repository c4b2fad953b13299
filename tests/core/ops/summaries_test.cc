#include <kolo/core/ops/summaries.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include <kolo/core/base/error.h>

#include "tests/core/run_op.h"
#include "tests/core/shape_check.h"

namespace kolo {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

std::string summary_of(const Tensor& input, const std::function<Output(const Scope&, Output)>& build) {
  return run_op({input}, [&](Scope& s, const Outputs& in) { return build(s, in[0]); }).value<std::string>();
}

TEST(SummaryOps, GiveWhatTheWritersFunctionsGive) {
  const Tensor x = Tensor::of<float>({1, 2, 2, 1}, {1, 2, 3, 4}),
               text = Tensor::of<std::string>({2}, {"a", "b"});
  EXPECT_EQ(summary_of(Tensor::scalar(0.5f),
                       [](const Scope& s, Output v) { return summary::scalar(s, "loss", v); }),
            scalar_summary("loss", 0.5));
  EXPECT_EQ(summary_of(x, [](const Scope& s, Output v) { return summary::histogram(s, "h", v); }),
            histogram_summary("h", x));
  EXPECT_EQ(summary_of(x, [](const Scope& s, Output v) { return summary::image(s, "x", v, 2); }),
            image_summary("x", x, 2));
  EXPECT_EQ(summary_of(text, [](const Scope& s, Output v) { return summary::text(s, "note", v); }),
            text_summary("note", text));
}

TEST(SummaryOps, AreStringScalars) {
  expect_shape({{}}, [](Scope& s, const Outputs& in) { return summary::scalar(s, "a", in[0]); }, {});
  expect_shape({{3, -1}}, [](Scope& s, const Outputs& in) { return summary::histogram(s, "a", in[0]); }, {});
  expect_shape({{-1, 2, 2, 3}}, [](Scope& s, const Outputs& in) { return summary::image(s, "a", in[0]); },
               {});
  expect_shape({KnownInput(Shape({2}), DType::string)},
               [](Scope& s, const Outputs& in) { return summary::text(s, "a", in[0]); }, {});
  expect_shape(
      {{}}, [](Scope& s, const Outputs& in) { return summary::merge(s, {summary::scalar(s, "a", in[0])}); },
      {});
}

// Two of the same value stay two, each with its own tag.
TEST(SummaryOps, AreMergedWithTheirOwnNamesAsTags) {
  const std::string merged = summary_of(Tensor::scalar(2.0f), [](const Scope& s, Output v) {
    summary::scalar(s.name_scope("train"), "loss", v);
    summary::scalar(s, "loss", v, {.family = "f"});
    summary::scalar(s, "not merged", v, {.collections = {}});
    return summary::merge_all(s);
  });
  EXPECT_EQ(merged,
            merge_summaries(std::vector{scalar_summary("train/loss", 2), scalar_summary("f/f/loss", 2)}));
}

TEST(SummaryOps, TakeTheNameThatTheOpHas) {
  const std::string merged = summary_of(Tensor::scalar(2.0f), [](const Scope& s, Output v) {
    return summary::merge(s, {summary::scalar(s, "a b", v), summary::scalar(s, "a b", v)});
  });
  EXPECT_EQ(merged, merge_summaries(std::vector{scalar_summary("a_b", 2), scalar_summary("a_b_1", 2)}));
}

TEST(SummaryOps, GiveNothingWhereThereAreNone) {
  Graph graph;
  EXPECT_FALSE(summary::merge_all(Scope(graph)));
  EXPECT_THROW(summary::merge(Scope(graph), {}), InvalidArgumentError);
}

TEST(SummaryOps, RefuseWhatTheyCannotShow) {
  Graph graph;
  const Scope s(graph);
  EXPECT_THAT([&] { summary::scalar(s, "a", zeros(s, DType::f32, {2})); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("the value is [2]")));
  EXPECT_THAT(
      [&] {
        summary::image(s, "a", zeros(s, DType::f32, {2, 2, 2, 2}));
      },
      ThrowsMessage<InvalidArgumentError>(
          HasSubstr("Tensor must be 4-D with last dim 1, 3, or 4, not [2,2,2,2]")));
  EXPECT_THAT([&] { summary::text(s, "a", zeros(s, DType::f32, {})); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("to have dtype string, got f32")));
  const Output nan = constant(s, Tensor::scalar(std::nanf("")));
  EXPECT_THAT([&] { Session(graph).run(summary::histogram(s, "h", nan)); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("Nan in summary histogram for: h")));
}

}  // namespace
}  // namespace kolo
