// Models on several virtual GPUs of one process.
#include <kolo/models/keras/multi_gpu.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <numeric>

#include <kolo/core/base/error.h>
#include <kolo/models/keras/image_layers.h>
#include <kolo/models/keras/merge_layers.h>
#include <kolo/models/keras/model.h>
#include <kolo/models/keras/normalization_layers.h>
#include <tests/models/keras/values.h>

namespace kolo::keras {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

WorkspaceOptions with_gpus(std::size_t count) {
  WorkspaceOptions options;
  options.config.virtual_gpus.resize(count);
  return options;
}

// Numbers between −1 and 1 without a pattern that a slice would keep.
Tensor numbers(const Shape& shape) {
  Tensor tensor(DType::f32, shape);
  for (std::int64_t i = 0; i < tensor.elements(); ++i)
    tensor.data<float>()[i] = static_cast<float>(i * 37 % 101) / 50 - 1;
  return tensor;
}

Sequential small_net(Workspace& ws) {
  const auto on_cpu = ws.device("/cpu:0");
  return Sequential(ws, {Dense(5, {.activation = "tanh", .input_shape = {3}}), Dense(2)});
}

// What the replicas that multi_gpu_model has made get of a batch.
std::vector<std::int64_t> rows_of_replicas(Workspace& ws, const Model& model, std::int64_t batch) {
  Outputs slices;
  for (int id = 0; id < ws.graph().num_nodes(); ++id)
    if (const Node& node = ws.graph().node(id); node.op() == "BatchSlice") slices.push_back(node.output());
  std::vector<std::int64_t> rows;
  for (const Output& slice : slices)
    rows.push_back(
        ws.session().run(slice, {{model.inputs()[0].output(), numbers({batch, 3})}}).shape().dim(0));
  return rows;
}

TEST(MultiGpu, SharesABatchOut) {  // rows 33 and 34; TensorFlow 1, row 66
  Workspace eight(with_gpus(8));
  const Model on_eight = multi_gpu_model(small_net(eight), 8);
  EXPECT_THAT(rows_of_replicas(eight, on_eight, 256), Each(32));
  EXPECT_THAT(rows_of_replicas(eight, on_eight, 100), ElementsAre(12, 12, 12, 12, 12, 12, 12, 16));
  Workspace four(with_gpus(4));
  const Model on_four = multi_gpu_model(small_net(four), 4);
  EXPECT_THAT(rows_of_replicas(four, on_four, 11), ElementsAre(2, 2, 2, 5));
  EXPECT_THAT(rows_of_replicas(four, on_four, 3), ElementsAre(0, 0, 0, 3));
}

TEST(MultiGpu, TakesAllGpusWhereNoneAreNamed) {
  Workspace ws(with_gpus(3));
  EXPECT_EQ(rows_of_replicas(ws, multi_gpu_model(small_net(ws)), 9).size(), 3u);
}

TEST(MultiGpu, NamesTheDevicesThatItMisses) {  // row 35
  Workspace ws(with_gpus(4));
  const Sequential net = small_net(ws);
  EXPECT_THAT([&] { multi_gpu_model(net, {3}); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("with `len(gpus) >= 2`. Received: `gpus=[3]`")));
  EXPECT_THAT([&] { multi_gpu_model(net, 1); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("with `gpus >= 2`. Received: `gpus=1`")));
  EXPECT_THAT(
      [&] { multi_gpu_model(net, 5); },
      ThrowsMessage<InvalidArgumentError>(AllOf(
          HasSubstr(
              "To call `multi_gpu_model` with `gpus=5`, we expect the following devices to be available: "
              "['/cpu:0', '/gpu:0', '/gpu:1', '/gpu:2', '/gpu:3', '/gpu:4']"),
          HasSubstr(
              "this machine only has: ['/cpu:0', '/gpu:0', '/gpu:1', '/gpu:2', '/gpu:3']. Try reducing"))));
  Workspace none;
  EXPECT_THAT([&] { multi_gpu_model(small_net(none)); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("Received: `gpus=0`")));
}

TEST(MultiGpu, ComputesEachReplicaOnItsGpu) {
  Workspace ws(with_gpus(4));
  const Model parallel = multi_gpu_model(small_net(ws), {3, 1}, {.cpu_merge = false});
  ws.initialize_variables();
  const Output result = parallel.outputs()[0].output();
  std::vector<std::string> merges, products;
  for (const KernelChoice& choice :
       ws.session().kernels({result}, {{parallel.inputs()[0].output(), numbers({4, 3})}})) {
    if (choice.op == "Concat") merges.push_back(choice.device);
    if (choice.op == "MatMul") products.push_back(choice.node + " on " + choice.device);
  }
  EXPECT_THAT(merges, ElementsAre(HasSubstr("GPU:3")));  // row 36
  ASSERT_EQ(products.size(), 4u);
  for (const std::string& product : products)
    EXPECT_THAT(product, ::testing::AnyOf(AllOf(HasSubstr("replica_3/"), HasSubstr("GPU:3")),
                                          AllOf(HasSubstr("replica_1/"), HasSubstr("GPU:1"))));
}

std::vector<std::string> placements(const Graph& graph) {
  std::vector<std::string> all;
  for (int id = 0; id < graph.num_nodes(); ++id) {
    const Node& node = graph.node(id);
    std::string text = node.name() + " at " + node.requested_device();
    for (const std::string& group : node.colocation_groups()) text += ' ' + group;
    all.push_back(text);
  }
  return all;
}

TEST(Context, IsMultiGpuModelInAnotherSpelling) {  // row 36
  Workspace one(with_gpus(4)), other(with_gpus(4));
  const Sequential net = small_net(one);
  net.compile({.optimizer = "sgd", .loss = "mse", .context = {gpu(3), gpu(1)}});
  const Model parallel = multi_gpu_model(small_net(other), {3, 1});
  parallel.compile({.optimizer = "sgd", .loss = "mse"});
  EXPECT_EQ(placements(one.graph()), placements(other.graph()));
  EXPECT_THAT(placements(one.graph()), ::testing::Contains(AllOf(HasSubstr("Concat"), HasSubstr("CPU:0"))));
  net.set_weights(parallel.get_weights());
  const Tensor x = numbers({7, 3});
  EXPECT_EQ(elements(net.predict(x)[0]), elements(parallel.predict(x)[0]));
}

TEST(Context, MayBeOneDevice) {
  Workspace ws(with_gpus(2));
  const Sequential net(ws, {Dense(2, {.input_shape = {3}})});
  net.compile({.optimizer = "sgd", .loss = "mse", .context = {"gpu(1)"}});
  bool on_gpu = false;
  for (const std::string& node : placements(ws.graph()))
    if (node.find("training/") == 0 && node.find("/MatMul") != std::string::npos)
      on_gpu = node.find("GPU:1") != std::string::npos;
  EXPECT_TRUE(on_gpu);
  net.fit(numbers({8, 3}), numbers({8, 2}), {.verbose = 0});
  EXPECT_EQ(net.predict(numbers({5, 3}))[0].shape(), (Shape{5, 2}));
}

TEST(Context, SaysWhichEntryDoesNotGo) {
  Workspace ws(with_gpus(2));
  const Sequential net = small_net(ws);
  const auto compile = [&](const std::vector<Context>& context) {
    net.compile({.optimizer = "sgd", .loss = "mse", .context = context});
  };
  EXPECT_THAT(
      [&] {
        compile({gpu(0), cpu()});
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("cpu(0) stands among 2 contexts")));
  EXPECT_THAT(
      [&] {
        compile({gpu(1), gpu(1)});
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("gpu(1) is given twice")));
  EXPECT_THAT(
      [&] {
        compile({gpu(0), gpu(2)});
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("['/cpu:0', '/gpu:0', '/gpu:2']. However")));
  EXPECT_THAT([&] { compile({gpu(4)}); }, ThrowsMessage<InvalidArgumentError>(HasSubstr("['/gpu:4']")));
  EXPECT_THAT([&] { compile({"tpu(0)"}); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("Unknown context: tpu(0)")));
}

class MultiGpuStep : public ::testing::TestWithParam<int> {};

TEST_P(MultiGpuStep, OfSgdIsThatOfOneDevice) {
  const int gpus = GetParam();
  Workspace ws(with_gpus(8));
  const Sequential net = small_net(ws), alone = small_net(ws);
  alone.set_weights(net.get_weights());
  const Model parallel = multi_gpu_model(net, gpus);
  const CompileOptions options{.optimizer = SGD({.lr = .1}), .loss = "mse", .metrics = {"mae"}};
  parallel.compile(options);
  alone.compile({.optimizer = SGD({.lr = .1}), .loss = "mse", .metrics = {"mae"}});
  for (const std::int64_t batch : {32, 11, 3}) {
    const Tensor x = numbers({batch, 3}), y = numbers({batch, 2});
    const auto of_gpus = parallel.train_on_batch(x, y), of_one = alone.train_on_batch(x, y);
    for (std::size_t i = 0; i < of_one.size(); ++i) EXPECT_NEAR(of_gpus[i], of_one[i], 1e-5);
  }
  const auto of_gpus = net.get_weights(), of_one = alone.get_weights();
  for (std::size_t i = 0; i < of_one.size(); ++i)
    EXPECT_THAT(elements(of_gpus[i]), ::testing::Pointwise(::testing::FloatNear(1e-5F), elements(of_one[i])));
}
INSTANTIATE_TEST_SUITE_P(Gpus, MultiGpuStep, ::testing::Values(2, 4, 8));

// Moving mean and variance start at 0 and 1 and keep .99 of themselves for each replica with rows; the values
// are written out.
TEST(MultiGpu, MovesAveragesByTheStatisticsOfEachSlice) {
  Workspace ws(with_gpus(2));
  const Sequential net(ws, {BatchNormalization({.input_shape = {1}})});
  const Model parallel = multi_gpu_model(net, 2);
  parallel.compile({.optimizer = SGD({.lr = 0}), .loss = "mse"});
  parallel.train_on_batch(floats({4}, {1, 3, 10, 20}), floats({4}, {0, 0, 0, 0}));
  auto weights = net.get_weights();
  EXPECT_NEAR(elements(weights[2])[0], .01 * (2 + 15), 1e-5);
  EXPECT_NEAR(elements(weights[3])[0], 1 + .01 * (2 - 1 + 50 - 1), 1e-5);
  // One row: the first replica has none. Its variance of one element counts as it is, 0.
  parallel.train_on_batch(floats({1}, {7}), floats({1}, {0}));
  weights = net.get_weights();
  EXPECT_NEAR(elements(weights[2])[0], .17 * .99 + .01 * 7, 1e-5);
  EXPECT_NEAR(elements(weights[3])[0], 1.5 * .99, 1e-5);
}

// An image of 6×6, through all kinds of layers.
Model large_net(Workspace& ws) {
  const KerasTensor image = Input(ws, {2, 6, 6});
  KerasTensor h = Conv2D(4, {3, 3}, {.padding = "same", .activation = "relu"})(image);
  h = BatchNormalization()(h);
  h = Add()({h, DepthwiseConv2D({3, 3}, {.padding = "same"})(h)});
  h = MaxPooling2D()(h);
  h = Conv2DTranspose(3, {2, 2}, {.strides = {2, 2}})(h);
  h = Cropping2D({1, 1})(ZeroPadding2D({1, 1})(h));
  h = AveragePooling2D()(UpSampling2D({2, 2})(h));
  h = PReLU()(LeakyReLU()(ELU()(ReLU()(h))));
  h = GaussianNoise(.1)(Dropout(.2)(GaussianDropout(.1)(h)));
  const KerasTensor means = GlobalAveragePooling2D()(h), tops = GlobalMaxPooling2D()(h);
  const KerasTensor joined = Concatenate()({means, tops, Flatten()(Permute({2, 3, 1})(h))});
  const KerasTensor rows = LayerNormalization()(RepeatVector(2)(Dense(4)(joined)));
  const KerasTensor square = Reshape({2, 4})(Flatten()(rows));
  return Model(image, Softmax()(Dense(3)(Flatten()(Activation("selu")(square)))));
}

TEST(MultiGpu, TakesEmptySlicesThroughAllLayers) {
  Workspace ws(with_gpus(4));
  const Model net = large_net(ws), parallel = multi_gpu_model(net, 4);
  parallel.compile({.optimizer = "adam", .loss = "categorical_crossentropy"});
  const Tensor x = numbers({3, 2, 6, 6}), y = to_categorical(floats({3}, {0, 1, 2}), 3);
  const History history = parallel.fit(x, y, {.epochs = 3, .verbose = 0});
  for (const double loss : history["loss"]) EXPECT_TRUE(std::isfinite(loss)) << loss;
  for (const Tensor& weight : net.get_weights())
    for (const float number : elements(weight)) ASSERT_TRUE(std::isfinite(number));
  const auto together = elements(parallel.predict(x)[0]), alone = elements(net.predict(x)[0]);
  EXPECT_THAT(together, ::testing::Pointwise(::testing::FloatNear(1e-5F), alone));
}

TEST(MultiGpu, LooksUpNoRowsInAnEmptySlice) {
  Workspace ws(with_gpus(4));
  const Sequential net(ws, {Embedding(10, 4, {.input_shape = {3}}), Flatten(), Dense(1)});
  const Model parallel = multi_gpu_model(net, 4);
  parallel.compile({.optimizer = "sgd", .loss = "mse"});
  parallel.train_on_batch(Tensor::of<std::int32_t>({2, 3}, {1, 2, 3, 9, 0, 1}), floats({2}, {1, 2}));
  for (const Tensor& weight : net.get_weights())
    for (const float number : elements(weight)) ASSERT_TRUE(std::isfinite(number));
}

TEST(MultiGpu, SavesItsTemplate) {  // row 37
  const std::string path = std::filesystem::temp_directory_path() / "kolo_keras_multi_gpu";
  Workspace ws(with_gpus(2));
  const Sequential net = small_net(ws);
  const Model parallel = multi_gpu_model(net, 2);
  parallel.compile({.optimizer = "adam", .loss = "mse"});
  const Tensor x = numbers({16, 3});
  parallel.fit(x, numbers({16, 2}), {.epochs = 2, .verbose = 0});
  parallel.save(path);
  Workspace fresh;
  const Model alone = load_model(fresh, path);
  EXPECT_EQ(alone.class_name(), "Sequential");
  EXPECT_EQ(alone.weight_names(), net.weight_names());
  EXPECT_THAT(elements(alone.predict(x)[0]),
              ::testing::Pointwise(::testing::FloatNear(1e-5F), elements(parallel.predict(x)[0])));
  EXPECT_EQ(alone.optimizer().iterations().get(), 2);
  for (const char* suffix : {".json", ".safetensors"}) std::filesystem::remove(path + suffix);
}

TEST(MultiGpu, KeepsTheNamesOfTheOutputs) {
  Workspace ws(with_gpus(2));
  const KerasTensor x = Input(ws, {3});
  const Layer shared = Dense(2, {.name = "head"});
  const Model net({x}, {shared(x), shared(x), Dense(1, {.name = "tail"})(x)});
  EXPECT_THAT(multi_gpu_model(net, 2).output_names(), ElementsAre("head_1", "head_2", "tail"));
}

TEST(MultiGpu, MovesWeightsToTheCpu) {
  Workspace ws(with_gpus(2));
  const Sequential net(ws, {Dense(2, {.input_shape = {3}}), BatchNormalization(), Dense(1)});
  net.compile({.optimizer = "sgd", .loss = "mse"});
  const Tensor x = numbers({8, 3}), y = numbers({8, 1});
  net.train_on_batch(x, y);
  const auto before = elements(net.predict(x)[0]);
  const Model parallel = multi_gpu_model(net, 2, {.cpu_relocation = true});
  EXPECT_EQ(elements(net.predict(x)[0]), before);
  EXPECT_THAT([&] { net.train_on_batch(x, y); },
              ThrowsMessage<FailedPreconditionError>(HasSubstr("You must compile a model before training")));
  parallel.compile({.optimizer = "sgd", .loss = "mse"});
  parallel.train_on_batch(x, y);
  EXPECT_THAT(elements(net.predict(x)[0]),
              ::testing::Pointwise(::testing::FloatNear(1e-5F), elements(parallel.predict(x)[0])));
  EXPECT_NE(elements(net.predict(x)[0]), before);
}

}  // namespace
}  // namespace kolo::keras
