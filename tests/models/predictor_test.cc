// A checkpoint folder as a function. Equality with PyTorch is tests/python/predictor_test.py's.
#include <gmock/gmock.h>

#include <cmath>
#include <string>
#include <thread>
#include <vector>

#include <kolo/core/base/error.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/linalg.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/ops/shapes.h>
#include <kolo/core/ops/variables.h>
#include <kolo/core/runtime/session.h>
#include <kolo/core/training/inference_graph.h>
#include <kolo/core/training/saver.h>
#include <kolo/models/predictor.h>
#include <kolo/optimizer/moving_average.h>

#include "tests/core/training/temporary_directory.h"

namespace kolo::models {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;
using ::testing::ThrowsMessage;

// logits = x · w, x f32 [N,2], two classes.
struct Folder : ::testing::Test {
  Folder() : s(graph) {
    x = placeholder(s.named("x"), DType::f32, {-1, 2});
    w = Variable(s.named("w"), constant(s, Tensor::of<float>({2, 2}, {1, 0, 0, 2})));
    logits = matmul(s, x, w.read());
  }
  void save(std::int64_t step) {
    if (!session) {
      session.emplace(graph);
      session->run(global_variables_initializer(s));
    }
    Saver(graph).save(*session, folder / "model.ckpt", step);
    write_inference_graph(folder.path(), {logits});
  }

  TemporaryDirectory folder;
  Graph graph;
  Scope s;
  Output x, logits;
  Variable w;
  std::optional<Session> session;
};

// Of a row with logits a and b.
std::vector<float> shares(double a, double b) {
  const double first = 1 / (1 + std::exp(b - a));
  return {static_cast<float>(first), static_cast<float>(1 - first)};
}

std::vector<float> values(const Tensor& tensor) {
  return {tensor.span<float>().begin(), tensor.span<float>().end()};
}

TEST_F(Folder, GivesSharesThatAddUpToOne) {
  save(7);
  const Predictor predictor = Predictor::load(folder.path());
  const Tensor found = predictor(Tensor::of<float>({2, 2}, {3, 1, 0, 1}));
  EXPECT_EQ(found.shape(), Shape({2, 2}));
  std::vector<float> expected = shares(3, 2);
  for (const float share : shares(0, 2)) expected.push_back(share);
  EXPECT_THAT(values(found), Pointwise(FloatNear(1e-6F), expected));
  EXPECT_THAT(values(predictor.logits(Tensor::of<float>({1, 2}, {3, 1}))), ElementsAre(3, 2));
}

TEST_F(Folder, SaysWhatItTakesAndGives) {
  save(7);
  const Predictor predictor = Predictor::load(folder.path());
  EXPECT_EQ(predictor.sample(), Shape({2}));
  EXPECT_EQ(predictor.dtype(), DType::f32);
  EXPECT_EQ(predictor.classes(), 2);
  EXPECT_THAT(predictor.class_names(), ElementsAre("0", "1"));
  EXPECT_EQ(predictor.global_step(), 7);
}

TEST_F(Folder, NamesItsClasses) {
  save(7);
  write_bytes(folder / "config.json",
              R"({"model": {"name": "mlp"}, "data": {"sample": [2], "dtype": "f32", "classes": 2,
                  "class_names": ["cat", "dog"]}, "preprocessing": {"normalize": false}, "seed": 1,
                  "switches": {}})");
  EXPECT_THAT(Predictor::load(folder.path()).class_names(), ElementsAre("cat", "dog"));
}

// 1 / (1 + e^−x), by hand, and the numbers as they are.
TEST_F(Folder, GivesWhatItsLabelsAre) {
  save(7);
  const auto answers = [&](const std::string& key) {
    write_bytes(folder / "config.json",
                R"({"model": {"name": "mlp"}, "data": {"sample": [2], "dtype": "f32", "classes": 2, ")" +
                    key + R"(": true}, "preprocessing": {"normalize": false}, "seed": 1, "switches": {}})");
    return values(Predictor::load(folder.path())(Tensor::of<float>({1, 2}, {3, -.5F})));
  };
  EXPECT_THAT(answers("several_labels"), Pointwise(FloatNear(1e-6F), {0.952574127F, 0.268941421F}));
  EXPECT_THAT(answers("regression"), ElementsAre(3, -1));
}

TEST_F(Folder, DividesPixelsBy255) {
  save(1);
  const Predictor predictor = Predictor::load(folder.path());
  EXPECT_THAT(values(predictor.logits(Tensor::of<std::uint8_t>({1, 2}, {255, 51}))),
              Pointwise(FloatNear(1e-6F), {1.0F, 0.4F}));
  EXPECT_THAT(values(predictor.logits(Tensor::of<double>({1, 2}, {3, 1}))), ElementsAre(3, 2));
}

TEST_F(Folder, TakesNoSamplesAtAll) {
  save(1);
  EXPECT_EQ(Predictor::load(folder.path())(Tensor(DType::f32, {0, 2})).shape(), Shape({0, 2}));
}

TEST_F(Folder, TakesTheMovingAveragesWhereThereAreSome) {
  ExponentialMovingAverage averages(0.5);
  averages.apply(s, {w}, group(s, {}));
  session.emplace(graph);
  session->run(global_variables_initializer(s));
  session->set_variables({{averages.average(w).name(), Tensor::of<float>({2, 2}, {5, 0, 0, 6})}});
  save(3);
  EXPECT_THAT(values(Predictor::load(folder.path()).logits(Tensor::of<float>({1, 2}, {1, 1}))),
              ElementsAre(5, 6));
}

TEST_F(Folder, TakesTheNewestCheckpointAndKeepsIt) {
  save(1);
  const Predictor before = Predictor::load(folder.path());
  session->set_variables({{"w", Tensor::of<float>({2, 2}, {7, 0, 0, 8})}});
  save(2);
  const Tensor ones = Tensor::of<float>({1, 2}, {1, 1});
  EXPECT_THAT(values(before.logits(ones)), ElementsAre(1, 2));
  EXPECT_THAT(values(Predictor::load(folder.path()).logits(ones)), ElementsAre(7, 8));
}

TEST_F(Folder, PredictsOnSeveralThreads) {
  save(1);
  const Predictor predictor = Predictor::load(folder.path());
  std::vector<std::jthread> threads;
  std::vector<std::vector<float>> found(4);
  for (std::size_t i = 0; i < found.size(); ++i)
    threads.emplace_back([&, i] {
      for (int n = 0; n < 50; ++n)
        found[i] = values(predictor.logits(Tensor::of<float>({1, 2}, {static_cast<float>(i), 1})));
    });
  threads.clear();
  for (std::size_t i = 0; i < found.size(); ++i) EXPECT_THAT(found[i], ElementsAre(static_cast<float>(i), 2));
}

// 20 times as large as the training's, in the column that is told; an earlier version kept no numbers.
TEST_F(Folder, WarnsOnceOfAColumnInAnotherUnit) {
  save(1);
  const auto said = [&](const std::string& key, float size) {
    write_bytes(folder / "config.json",
                R"({"model": {"name": "mlp"}, "data": {"sample": [2], "dtype": "f32", "classes": 2, )" + key +
                    R"("table": {"features": [{"name": "size", "place": 0, "mean": 1},
                    {"name": "depth", "place": 2, "mean": 1}], "label": {"name": "y", "place": 1, "words":
                    ["a", "b"]}, "ignored": [], "columns": 3, "named": true, "missing": "refuse"}},
                    "preprocessing": {"normalize": false}, "seed": 1, "switches": {}})");
    const Predictor predictor = Predictor::load(folder.path());
    testing::internal::CaptureStderr();
    for (int i = 0; i < 2; ++i) predictor(Tensor::of<float>({1, 2}, {1, size}));
    return testing::internal::GetCapturedStderr();
  };
  const std::string key = R"("column_largest": [500, 3], )";
  EXPECT_EQ(said(key, 60), "");
  EXPECT_EQ(said("", 6000), "");
  const std::string text = said(key, -6000);
  EXPECT_THAT(text, HasSubstr("Predictor: numbers are up to 6000 in column 3 \"depth\" (3 in the training); "
                              "each column must be in the unit that it had in the training"));
  EXPECT_EQ(text.find("numbers are"), text.rfind("numbers are"));
}

TEST_F(Folder, RefusesOtherSamplesWithBothShapes) {
  save(1);
  const Predictor predictor = Predictor::load(folder.path());
  EXPECT_THAT(
      [&] {
        predictor(Tensor(DType::f32, {4, 3}));
      },
      ThrowsMessage<InvalidArgumentError>(AllOf(HasSubstr("[4,3]"), HasSubstr("[N,2]"))));
  EXPECT_THAT([&] { predictor(Tensor(DType::f32, {2})); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("[N,2]")));
  EXPECT_THAT(
      [&] {
        predictor(Tensor(DType::i32, {4, 2}));
      },
      ThrowsMessage<InvalidArgumentError>(AllOf(HasSubstr("i32"), HasSubstr("f32"))));
}

TEST_F(Folder, SaysWhatIsMissing) {
  EXPECT_THAT([&] { Predictor::load(folder / "nowhere"); },
              ThrowsMessage<NotFoundError>(HasSubstr("there is no folder")));
  EXPECT_THAT([&] { Predictor::load(folder.path()); },
              ThrowsMessage<NotFoundError>(AllOf(HasSubstr(folder.path()), HasSubstr("inference.pb"))));
  write_inference_graph(folder.path(), {logits});
  EXPECT_THAT([&] { Predictor::load(folder.path()); },
              ThrowsMessage<NotFoundError>(HasSubstr("there is no checkpoint in")));
}

TEST_F(Folder, RefusesANetworkOfTwoInputs) {
  const Output y = placeholder(s.named("y"), DType::f32, {-1, 2});
  logits = add(s, logits, y);
  save(1);
  EXPECT_THAT([&] { Predictor::load(folder.path()); },
              ThrowsMessage<InvalidArgumentError>(AllOf(HasSubstr("2 inputs"), HasSubstr("x, y"))));
}

TEST(Predictor, ContinuesTokensOfEitherWidth) {
  TemporaryDirectory folder;
  Graph graph;
  Scope s(graph);
  const Output tokens = placeholder(s.named("tokens"), DType::i32, {-1, 2});
  const Variable w(s.named("w"), constant(s, Tensor::of<float>({1, 3}, {0, 1, 2})));
  const Output logits = matmul(s, reshape(s, cast(s, tokens, DType::f32), {-1, 1}), w.read());
  Session session(graph);
  session.run(global_variables_initializer(s));
  Saver(graph).save(session, folder / "model.ckpt", 1);
  write_inference_graph(folder.path(), {logits});
  const Predictor predictor = Predictor::load(folder.path());
  EXPECT_EQ(predictor.dtype(), DType::i32);
  EXPECT_EQ(predictor.classes(), 3);
  for (const Tensor& given :
       {Tensor::of<std::int32_t>({1, 2}, {2, 1}), Tensor::of<std::int64_t>({1, 2}, {2, 1})})
    EXPECT_THAT(values(predictor.logits(given)), ElementsAre(0, 2, 4, 0, 1, 2));
  EXPECT_THAT(
      [&] {
        predictor(Tensor::of<std::int64_t>({1, 2}, {2, std::int64_t{1} << 40}));
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("1099511627776")));
}

// A network may compute what it reads from bytes; a folder is fed with what it reads.
TEST(PredictorOfPixels, IsFedWithWhatTheNetworkReads) {
  TemporaryDirectory folder;
  Graph graph;
  const Scope s(graph);
  const Output pixels = placeholder(s.named("pixels"), DType::u8, {-1, 2});
  const Output images = div(s.named("images"), cast(s, pixels, DType::f32), constant(s, 255.0F));
  const Variable w(s.named("w"), constant(s, Tensor::of<float>({2, 2}, {1, 0, 0, 2})));
  const Output logits = matmul(s, images, w.read());
  Session session(graph);
  session.run(global_variables_initializer(s));
  Saver(graph).save(session, folder / "model.ckpt", 1);
  write_inference_graph(folder.path(), {logits}, {images});
  for (const NodeDef& node : read_graph_def(folder / kInferenceGraphFile).nodes)
    EXPECT_NE(node.name, "pixels");
  const Predictor predictor = Predictor::load(folder.path());
  const Tensor found = predictor(Tensor::of<float>({1, 2}, {0.5F, 1}));
  EXPECT_THAT(std::vector<float>(found.data<float>(), found.data<float>() + 2),
              Pointwise(FloatNear(1e-6F), shares(0.5, 2)));
}

}  // namespace
}  // namespace kolo::models
