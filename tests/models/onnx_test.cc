// Networks of the zoo as ONNX: accepted by its checker, and computed anew by tests/models/onnx_values.py.
#include <gmock/gmock.h>

#include <fmt/core.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include <kolo/core/base/error.h>
#include <kolo/core/graph/inference_form.h>
#include <kolo/core/graph/op_schema.h>
#include <kolo/core/kernels/kernel.h>
#include <kolo/core/onnx/onnx_model.h>
#include <kolo/core/ops/activations.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/convolution.h>
#include <kolo/core/ops/indexing.h>
#include <kolo/core/ops/linalg.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/ops/pooling.h>
#include <kolo/core/ops/random.h>
#include <kolo/core/ops/reductions.h>
#include <kolo/core/ops/shapes.h>
#include <kolo/core/ops/slicing.h>
#include <kolo/core/ops/variables.h>
#include <kolo/core/runtime/session.h>
#include <kolo/models/layers.h>
#include <kolo/models/zoo.h>

#include "tests/core/training/temporary_directory.h"
#include "tests/shell_command.h"
#include "tests/support/paths.h"

namespace kolo {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

// With onnx and NumPy: where no interpreter has them the tests that compute are skipped.
std::string find_python_with_onnx() {
  for (const char* python : {"python3", "/usr/bin/python3"})
    if (run_command(fmt::format("{} -c 'import numpy, onnx' 2>/dev/null", python)).code == 0) return python;
  return "";
}
const std::string& python_with_onnx() {
  static const std::string python = find_python_with_onnx();
  return python;
}

Tensor fractions(const Shape& shape) {
  Tensor x(DType::f32, shape);
  std::int64_t i = 0;
  for (float& value : x.span<float>()) value = static_cast<float>(++i * 37 % 101) / 50 - 1;
  return x;
}

Tensor tokens(const Shape& shape, std::int32_t words) {
  Tensor x(DType::i32, shape);
  std::int32_t i = 0;
  for (std::int32_t& value : x.span<std::int32_t>()) value = (++i * 37) % words;
  return x;
}

struct Onnx : ::testing::Test {
  using Build = std::function<Output(Scope& s, Output x)>;

  // Writes network and values, and has them compared.
  void expect_equal(const Tensor& x, const Build& build) {
    const std::string& python = python_with_onnx();
    if (python.empty()) GTEST_SKIP() << "there is no Python with onnx and numpy (Debian: python3-onnx)";
    graph.set_seed(5);
    Scope s(graph);
    const Output input = placeholder(s.named("x"), x.dtype(), x.shape().with_dim(0, -1));
    const Output y = inference_form(s, build(s, input));
    Session session(graph);
    session.run(global_variables_initializer(s));
    disturb(session);
    write_onnx(folder / "model.onnx", {y},
               [&](const Node& storage) { return session.get_variables({storage.name()})[0]; });
    write(x, "x");
    write(session.run(y, {{input, x}}), "y");
    const Ended compared = run_command(
        fmt::format("{} {} {} 2>&1", python, source_path("tests/models/onnx_values.py"), folder.path()));
    EXPECT_EQ(compared.code, 0) << compared.output;
  }

  // Biases and averages that all are 0, or 1, would hide what is exchanged.
  void disturb(Session& session) {
    int k = 0;
    for (const Variable& variable : global_variables(graph)) {
      if (variable.shape().rank() != 1) continue;
      Tensor value = session.get_variables({variable.name()})[0];
      for (float& element : value.span<float>()) element += static_cast<float>(++k * 13 % 17) / 40;
      session.set_variables({{variable.name(), value}});
    }
  }

  void write(const Tensor& tensor, const std::string& name) {
    write_bytes(folder / (name + ".raw"),
                std::string(reinterpret_cast<const char*>(tensor.raw()), tensor.bytes()));
    std::string shape;
    for (const std::int64_t dim : tensor.shape().dims()) shape += fmt::format("{} ", dim);
    write_bytes(folder / (name + ".shape"), shape);
  }

  TemporaryDirectory folder;
  Graph graph;
};

template <Output (*kModel)(Scope&, Output, std::int64_t)>
Output with_its_classes(Scope& s, Output x) {
  constexpr std::int64_t kClasses = 10;
  return kModel(s, x, kClasses);
}

TEST_F(Onnx, ComputesTheMlp) { expect_equal(fractions({3, 784}), with_its_classes<models::mlp>); }
TEST_F(Onnx, ComputesLenet) { expect_equal(fractions({2, 1, 28, 28}), with_its_classes<models::lenet>); }
TEST_F(Onnx, ComputesResnet20) {
  expect_equal(fractions({2, 3, 32, 32}), with_its_classes<models::resnet20>);
}
TEST_F(Onnx, ComputesResnet50) {
  expect_equal(fractions({1, 3, 64, 64}), with_its_classes<models::resnet50>);
}
TEST_F(Onnx, ComputesTheCifar10Net) {
  expect_equal(fractions({2, 3, 32, 32}), with_its_classes<models::cifar10_net>);
}
TEST_F(Onnx, ComputesTheLstm) {
  expect_equal(tokens({2, 6}, 11), [](Scope& s, Output x) {
    return models::lstm(s, x, {.vocabulary = 11, .layers = 2, .width = 16});
  });
}
TEST_F(Onnx, ComputesVgg16) { expect_equal(fractions({1, 3, 32, 32}), with_its_classes<models::vgg16>); }
TEST_F(Onnx, ComputesGpt) {
  expect_equal(tokens({2, 16}, 31), [](Scope& s, Output x) {
    return models::gpt(s, x, {.vocabulary = 31, .layers = 2, .width = 24, .heads = 3});
  });
}

TEST_F(Onnx, ComputesActivations) {
  expect_equal(fractions({4, 25}), [](Scope& s, Output x) {
    return concat(
        s,
        {gelu(s, x), gelu(s, x, false), swish(s, x), elu(s, x, 0.7), selu(s, x), leaky_relu(s, x, 0.2),
         softplus(s, x), relu6(s, mul(s, x, fill(s, DType::f32, {}, 9))), softmax(s, x), log_softmax(s, x)},
        1);
  });
}

TEST_F(Onnx, ComputesChoicesAndRepetitions) {
  expect_equal(fractions({4, 5}), [](Scope& s, Output x) {
    const Output bound = constant(s, .25F);
    const Output clipped =
        select(s, greater_equal(s, x, fill(s, DType::f32, {4, 5}, 0.1)), minimum(s, x, bound), neg(s, x));
    return mul(s, tile(s, expand_dims(s, clipped, 1), {1, 3, 1}), fill(s, DType::f32, {}, 2));
  });
}

// Keras' GaussianDropout.
TEST_F(Onnx, LeavesOutNoiseThatMultiplies) {
  Scope s(graph);
  const Output x = placeholder(s.named("x"), DType::f32, {-1, 3});
  EXPECT_EQ(inference_form(s, mul(s, x, gaussian_noise(s, ones_like(s, x), .5))), x);
}

TEST_F(Onnx, ComputesShapesSumsAndProducts) {
  expect_equal(fractions({2, 3, 4}), [](Scope& s, Output x) {
    const Output turned = transpose(s, x, {0, 2, 1});
    const Output product = batch_matmul(s, x, x, {.transpose_b = true});  // [N,3,3]
    const Output other = batch_matmul(s, turned, turned, {.transpose_a = true, .transpose_b = false});
    const Output sums = expand_dims(s, reduce_sum(s, x, {.axes = {2}}), 2);
    const Output means = reduce_mean(s, x, {.axes = {2}, .keep_dims = true});
    const Output joined =
        concat(s, {product, other, sums, means, pad(s, sums, {{0, 0}, {0, 0}, {1, 0}}, 3)}, 2);
    return reshape_like(s, sqrt(s, square(s, joined)), transpose(s, joined, {0, 2, 1}));
  });
}

TEST_F(Onnx, ComputesMeansUnderAWindow) {
  expect_equal(fractions({2, 3, 7, 6}), [](Scope& s, Output x) {
    return avg_pool(s, x, {.window = {3, 2}, .strides = {2, 2}, .padding = Padding::same});
  });
}

// Windows larger and smaller than the strides, odd sizes, and a result larger than the usual one.
TEST_F(Onnx, ComputesTransposedConvolutions) {
  expect_equal(fractions({2, 3, 5, 4}), [](Scope& s, Output x) {
    const auto of = [&](const char* name, const Shape& shape, const Conv2dTransposeOptions& options) {
      const Variable w(s.named(name), random_normal(s, DType::f32, shape));
      return reshape(s, conv2d_transpose(s, x, w, options), {-1, 3 * 2 * 2});
    };
    return concat(
        s,
        {of("same", {3, 2, 3, 4}, {.strides = {2, 3}, .padding = Padding::same}),
         of("small", {3, 2, 1, 2}, {.strides = {2, 3}, .padding = Padding::same}),
         of("valid", {3, 3, 3, 3}, {.strides = {1, 1}, .padding = Padding::valid}),
         of("gaps", {3, 2, 2, 2}, {.strides = {3, 3}, .padding = Padding::valid}),
         of("asked", {3, 2, 3, 3}, {.strides = {2, 2}, .padding = Padding::valid, .output_size = {12, 10}})},
        0);
  });
}

TEST_F(Onnx, ComputesImagesInOtherSizes) {
  expect_equal(fractions({2, 3, 5, 4}), [](Scope& s, Output x) {
    Outputs all;
    for (const ResizeMethod method : {ResizeMethod::nearest, ResizeMethod::bilinear})
      for (const ResizeOptions options : {ResizeOptions{}, ResizeOptions{.align_corners = true},
                                          ResizeOptions{.half_pixel_centers = true}}) {
        all.push_back(reshape(s, resize(s, x, {7, 12}, method, options), {-1, 6}));
        all.push_back(reshape(s, resize(s, x, {3, 2}, method, options), {-1, 6}));
      }
    return concat(s, all, 0);
  });
}

TEST_F(Onnx, ComputesSlices) {
  expect_equal(fractions({4, 5, 6}), [](Scope& s, Output x) {
    const auto flat = [&](Output y) { return reshape(s, y, {-1}); };
    return concat(s,
                  {flat(strided_slice(s, x, {0, 1, -2}, {0, 5, -6}, {1, 2, -1}, {.begin = 1, .end = 1})),
                   flat(strided_slice(s, x, {0, 0}, {0, 0}, {-1, -2}, {.begin = 3, .end = 3})),
                   flat(strided_slice(s, x, {0, 0, -1}, {0, 0, 0}, {},
                                      {.ellipsis = 1, .new_axis = 2, .shrink_axis = 4})),
                   flat(strided_slice(s, x, {2, 1}, {3, 9}, {}, {.ellipsis = 0, .shrink_axis = 1})),
                   flat(slice(s, x, {0, 2, 1}, {-1, 2, 3}))},
                  0);
  });
}

TEST_F(Onnx, ComputesParts) {
  expect_equal(fractions({4, 6, 5}), [](Scope& s, Output x) {
    const Outputs halves = split(s, x, 2, 1), uneven = split_v(s, x, {1, -1, 2}, -1),
                  rows = split(s, x, 4, 0);
    return concat(s,
                  {reshape(s, sub(s, halves[1], halves[0]), {-1}), reshape(s, uneven[2], {-1}),
                   reshape(s, uneven[1], {-1}), reshape(s, rows[3], {-1})},
                  0);
  });
}

// Of this program's own: y = x · |x| + 0.5.
void compute_shifted(KernelContext& context) {
  const auto* const x = context.input(0).data<float>();
  auto* const y = context.output(0).data<float>();
  for (std::int64_t i = 0; i < context.input(0).elements(); ++i) y[i] = x[i] * std::abs(x[i]) + 0.5f;
}
const RegisterOp shifted_op(OpSchema("TestShifted").input("x", {DType::f32}).output("y"));
const RegisterKernel shifted_on_cpus("TestShifted", "CPU", {DType::f32}, compute_shifted);
const RegisterOnnxForm shifted_in_onnx("TestShifted", [](OnnxNode& n) {
  const std::string squares = n.add("Mul", {n.input(0), n.add("Abs", n.inputs())});
  return std::vector<std::string>{n.add("Add", {squares, n.constant(Tensor::scalar(0.5f))})};
});

TEST_F(Onnx, TakesTheFormOfAnOpOfOnesOwn) {
  expect_equal(fractions({2, 5}), [](Scope& s, Output x) { return relu(s, s.add("TestShifted", {x})); });
  EXPECT_THAT(onnx_ops(), testing::Contains("TestShifted"));
}

TEST_F(Onnx, RefusesASecondForm) {
  const auto none = [](OnnxNode&) { return std::vector<std::string>(); };
  EXPECT_THAT(
      [&] { RegisterOnnxForm("Selu", none); },
      ThrowsMessage<InternalError>(HasSubstr("\"Selu\" is registered twice: by kolo and onnx_test.cc:")));
  EXPECT_THAT([&] { RegisterOnnxForm("TestShifted", none); },
              ThrowsMessage<InternalError>(HasSubstr("twice")));
}

TEST_F(Onnx, SaysWhichOpHasNoForm) {
  Scope s(graph);
  const Output y = cumsum(s.named("sums"), placeholder(s, DType::f32, {4}), 0);
  EXPECT_THAT(
      [&] { onnx_model({y}, {}); },
      ThrowsMessage<UnimplementedError>(HasSubstr("Cumsum node \"sums\": the op has no form in ONNX")));
}

TEST_F(Onnx, RefusesAValueOfAnotherShape) {
  Scope s(graph);
  const Variable v(s.named("v"), zeros(s, DType::f32, {3}));
  EXPECT_THAT([&] { onnx_model({relu(s, v)}, [](const Node&) { return Tensor::zeros(DType::f32, {2}); }); },
              ThrowsMessage<InvalidArgumentError>(
                  HasSubstr("the value of \"v\" is f32 [2]; the variable is f32 [3]")));
}

TEST_F(Onnx, RefusesNoOutputsAndAnOutputTwice) {
  Scope s(graph);
  const Output x = placeholder(s.named("x"), DType::f32, {4});
  EXPECT_THAT([&] { onnx_model({}, {}); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("at least one output")));
  EXPECT_THAT(
      [&] {
        onnx_model({x, x}, {});
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("\"x:0\" is asked for twice")));
}

}  // namespace
}  // namespace kolo
