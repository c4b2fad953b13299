// Models as Keras 2.2 writes them: the files in keras2/, written by hand after model.to_json() of Keras 2.1.6
// and 2.2.4.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include <kolo/models/keras/model.h>
#include <tests/models/keras/values.h>
#include <tests/support/paths.h>

namespace kolo::keras {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::Le;
using ::testing::ThrowsMessage;

Model read(Workspace& ws, const std::string& name) {
  std::stringstream text;
  text << std::ifstream(source_path("tests/models/keras/keras2/" + name)).rdbuf();
  return model_from_json(ws, text.str());
}

std::vector<std::string> names(const Model& model) {
  std::vector<std::string> all;
  for (const Layer& layer : model.layers()) all.push_back(layer.name());
  return all;
}

TEST(Keras2Json, IsTheMnistNetwork) {
  Workspace ws;
  const Model net = read(ws, "mnist_cnn.json");
  EXPECT_EQ(net.name(), "sequential_1");
  EXPECT_THAT(net.summary(), AllOf(HasSubstr("Total params: 1,199,882\n"), HasSubstr("(None, 64, 24, 24)"),
                                   HasSubstr("flatten_1 (Flatten)          (None, 9216)              0")));
  const Tensor p = net.predict(Tensor::zeros(DType::f32, {2, 1, 28, 28}))[0];
  EXPECT_EQ(p.shape(), (Shape{2, 10}));
  EXPECT_THAT(elements(p), Each(AllOf(Ge(0), Le(1))));
}

TEST(Keras2Json, MayBeAListOfLayers) {
  Workspace ws;
  const Model net = read(ws, "list_config.json");
  EXPECT_THAT(names(net), ElementsAre("c", "batch_normalization_1", "leaky_re_lu_1", "up_sampling2d_1",
                                      "zero_padding2d_1", "global_average_pooling2d_1", "d"));
  EXPECT_EQ(net.get_layer("zero_padding2d_1").output_shape(), (Shape{-1, 4, 18, 18}));
  // 4·2·3·3 + 4; beta and two averages, no gamma; 4·3 + 3.
  EXPECT_EQ(net.count_params(), 76 + 12 + 15);
  EXPECT_THAT(net.get_layer("d").get_config(),
              AllOf(HasSubstr("MaxNorm"), HasSubstr("0.00999999977"), HasSubstr("fan_avg")));
}

TEST(Keras2Json, RefusesWhatItWouldDrop) {
  const auto read_layer = [](const std::string& layer, const std::string& more,
                             const std::string& data_format = "channels_first") {
    Workspace ws({.data_format = data_format});
    const Model net = model_from_json(
        ws, R"({"class_name":"Sequential","config":[{"class_name":")" + layer +
                R"(","config":{"name":"one","batch_input_shape":[null,12,14,3],)" + more + "}}]}");
    return net.layers()[0].output_shape();
  };
  const std::string conv = R"("filters":4,"kernel_size":[3,3],"strides":[1,1],"padding":"valid",)";
  const auto refused = [&](const std::string& layer, const std::string& more, const std::string& key,
                           const std::string& value) {
    EXPECT_THAT([&] { read_layer(layer, more); },
                ThrowsMessage<InvalidArgumentError>(
                    AllOf(HasSubstr(layer + " \"one\""), HasSubstr('"' + key + '"'), HasSubstr(value))));
  };
  refused("Conv2D", conv + R"("data_format":"channels_last")", "data_format", "channels_last");
  refused("Conv2D", conv + R"("dilation_rate":[2,2])", "dilation_rate", "[2,2]");
  refused("PReLU", R"("shared_axes":[1,2])", "shared_axes", "[1,2]");
  refused("PReLU", R"("alpha_initializer":{"class_name":"Ones","config":{}})", "alpha_initializer", "Ones");
  refused("Embedding", R"("input_dim":4,"output_dim":2,"mask_zero":true)", "mask_zero", "true");
  const std::string dense = R"("units":4,)";
  refused("Dense",
          dense + R"("kernel_constraint":{"class_name":"MaxNorm","config":{"max_value":2,"axis":1}})", "axis",
          "1");
  refused("Dense", dense + R"("kernel_regularizer":{"class_name":"L1L2","config":{"l1":0.1,"l3":7}})", "l3",
          "7");
  EXPECT_THAT([&] { read_layer("Dense", dense + R"("activation":{"class_name":"LeakyReLU","config":{}})"); },
              ThrowsMessage<InvalidArgumentError>(
                  HasSubstr("Dense \"one\": a value of the config is of another kind")));
  EXPECT_THAT(
      [&] {
        read_layer("Dense", dense + R"("kernel_regularizer":{"class_name":"Mine","config":{"l1":0.1}})");
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("Unknown regularizer: Mine")));
  EXPECT_THAT(
      [&] {
        read_layer("Dense", dense + R"("kernel_initializer":{"class_name":"VarianceScaling","config":)"
                                    R"({"scale":1,"mode":"fan_avg","distribution":"untruncated_normal"}})");
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("untruncated_normal")));
  EXPECT_NO_THROW(read_layer(
      "Dense", dense + R"("kernel_constraint":{"class_name":"MaxNorm","config":{"max_value":2,"axis":0}},)"
                       R"("kernel_regularizer":{"class_name":"L1L2","config":{"l1":0.0,"l2":0.0}},)"
                       R"("kernel_initializer":{"class_name":"VarianceScaling","config":)"
                       R"({"scale":1,"mode":"fan_avg","distribution":"truncated_normal","seed":3}})"));
  EXPECT_NO_THROW(read_layer("Conv2D", conv + R"("dilation_rate":[1,1],"data_format":"channels_first")"));
  EXPECT_NO_THROW(read_layer("PReLU", R"("shared_axes":null,"alpha_initializer":"zeros")"));
  EXPECT_EQ(read_layer("Conv2D", conv + R"("data_format":"channels_last")", "channels_last"),
            (Shape{-1, 10, 12, 4}));
}

TEST(Keras2Json, RefusesInputsAndCallsThatKoloLacks) {
  const auto read_model = [](const std::string& input, const std::string& arguments) {
    Workspace ws;
    return model_from_json(
        ws,
        R"({"class_name":"Model","config":{"name":"m","layers":[{"name":"i","class_name":"InputLayer","config":)"
        R"({"batch_input_shape":[null,3],"name":"i",)" +
            input +
            R"(},"inbound_nodes":[]},{"name":"d",)"
            R"("class_name":"Dense","config":{"name":"d","units":2},"inbound_nodes":[[["i",0,0,)" +
            arguments + R"(]]]}],"input_layers":[["i",0,0]],"output_layers":[["d",0,0]]}})");
  };
  EXPECT_NO_THROW(read_model(R"("dtype":"float32","sparse":false)", "{}"));
  for (const std::string key : {R"("dtype":"float64")", R"("sparse":true)"})
    EXPECT_THAT([&] { read_model(key, "{}"); },
                ThrowsMessage<InvalidArgumentError>(
                    AllOf(HasSubstr("InputLayer \"i\""), HasSubstr(key.substr(0, 5)))));
  EXPECT_THAT([&] { read_model(R"("sparse":false)", R"({"mask":["i",0,0]})"); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("\"d\" is called with {\"mask\"")));
}

TEST(Keras2Json, PredictsWithAModelThatIsTheIdentity) {
  Workspace ws;
  const Sequential net(ws, {Dropout(.5, {.input_shape = {3}})});
  EXPECT_THAT(elements(net.predict(floats({1, 3}, {1, 2, 3}))[0]), ElementsAre(1, 2, 3));
}

TEST(Keras2Json, SharesLayersOfAGraph) {
  Workspace ws;
  const Model net = read(ws, "shared_layers.json");
  EXPECT_THAT(net.input_names(), ElementsAre("question", "answer"));
  EXPECT_THAT(net.output_names(), ElementsAre("fits", "near"));
  EXPECT_EQ(net.count_params(), 50 * 6 + (24 * 8 + 8) + (16 + 1));
  const Tensor words = Tensor::of<std::int32_t>({1, 4}, {3, 1, 4, 1});
  const auto results = net.predict({words, words});
  EXPECT_NEAR(results[1].value<float>(), 1, 1e-5);  // equal texts point in one direction
}

TEST(Keras2Json, IsReadAgainAsItWasWritten) {
  for (const char* name : {"mnist_cnn.json", "list_config.json", "shared_layers.json"}) {
    Workspace ws, other;
    const Model net = read(ws, name);
    EXPECT_EQ(model_from_json(other, net.to_json()).summary(), net.summary()) << name;
  }
}

}  // namespace
}  // namespace kolo::keras
