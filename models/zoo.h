// The zoo: networks as they are published, built into a graph. See models.h for what all of them have.
#pragma once

#include <cstdint>
#include <string>

#include <kolo/core/graph/scope.h>

namespace kolo::models {

// The network of TensorFlow's CIFAR-10 tutorial (2015–2018, models/tutorials/image/cifar10/cifar10.py), after
// cuda-convnet's (Krizhevsky, Sutskever, Hinton, "ImageNet classification with deep convolutional neural
// networks", NIPS 2012, section 3.3: local response normalization).

/// images x [N,C,H,W] → logits [N,classes]: 5×5 convolution to 64 channels, relu, 3×3 maximum of stride 2,
/// local response norm; the same with the norm before the maximum; dense layers of 384 and 192 with relu, and
/// a third. Padding is SAME; first values are the tutorial's (truncated normal). Half the squares of the
/// first two dense layers' weights times 0.004 are the graph's penalties (layers.h). 1,068,298 parameters for
/// the tutorial's 3×24×24, 1,756,426 for CIFAR-10's 3×32×32. The tutorial evaluates with moving averages of
/// the variables: ExponentialMovingAverage (optimizer/moving_average.h) with decay 0.9999. Throws
/// InvalidArgumentError unless x has four dimensions, of which all but the first are known.
Output cifar10_net(Scope& s, Output x, std::int64_t classes = 10);

// A transformer that says what comes next: Vaswani et al., "Attention is all you need", NIPS 2017, as decoder
// alone with normalization before each layer: Radford et al., "Language models are unsupervised multitask
// learners", OpenAI 2019.

/// Sizes of gpt.
struct GptOptions {
  std::int64_t vocabulary = 65;  // characters of Shakespeare's works
  std::int64_t layers = 4;
  std::int64_t width = 256;  // of a token's vector, a multiple of heads
  std::int64_t heads = 4;    // of each layer's attention
  bool tied = false;         // the last matrix is that of the tokens' vectors, transposed
  double dropout = 0;        // of the vectors, and of what each half of a block adds, in training; below 1
};

/// tokens [N,T], i32 below vocabulary → logits [N·T, vocabulary] for the token behind each, from it and those
/// before it in its row. Vectors of tokens and of T places; blocks of attention with `heads` heads and of a
/// dense layer of 4·width with GELU, each behind a layer norm and added to what came in; a layer norm; dense
/// without a bias. Matrices and vectors start as normal numbers of standard deviation 0.02. T must be known.
/// 3,225,600 parameters for T = 128; V·D + T·D + L·(12·D² + 13·D) + 2·D of vocabulary V, width D and L
/// layers, and V·D more unless tied: 124,439,808, GPT-2's, for 50257, 768 and 12 with T = 1024, tied. Throws
/// InvalidArgumentError for options that cannot be.
Output gpt(Scope& s, Output tokens, const GptOptions& options = {});

// The convolutional network of the first tutorials, after LeCun's LeNet-5 (1998): kolo's standard first
// model.

/// For digits x [N,784] or [N,1,28,28]: 5×5 convolution to 32 channels, relu, 2×2 pooling, 5×5 convolution to
/// 64, relu, pooling, dense 1024, relu, dense → logits [N,classes]. All with SAME padding; 3,274,634
/// parameters in conv1, conv2, fc1, fc2. Throws InvalidArgumentError for another x.
Output lenet(Scope& s, Output x, std::int64_t classes = 10);

// A recurrent network that says what comes next: Hochreiter, Schmidhuber, "Long short-term memory", Neural
// Computation 9 (1997), with forget gates (Gers, Schmidhuber, Cummins, 2000) as PyTorch's torch.nn.LSTM has
// them, on characters as in Karpathy's char-rnn (2015).

/// A layer: x [T·N, inputs], all sequences' first steps before their second ones, → h [T·N, units], from h
/// and c of 0. Of z = x · w + h · u + b the four quarters are the input gate, the forget gate, the new
/// content and the output gate: c = sigmoid(f) · c + sigmoid(i) · tanh(g), h = sigmoid(o) · tanh(c).
/// Variables w [inputs, 4·units] and u [units, 4·units] by Glorot's uniform rule, b from 0, from 1 for the
/// forget gate (Jozefowicz et al., ICML 2015): w and u are torch.nn.LSTM's weight_ih and weight_hh
/// transposed, b the sum of its two. The steps stand in the graph one after the other. Throws
/// InvalidArgumentError unless x is a matrix of known shape but for its rows, which T divides where they are
/// known.
Output lstm_layer(const Scope& s, Output x, std::int64_t steps, std::int64_t units, const std::string& name);

/// Sizes of lstm.
struct LstmOptions {
  std::int64_t vocabulary = 65;  // characters of Shakespeare's works
  std::int64_t layers = 2;
  std::int64_t width = 256;  // of a token's vector and of each layer
};

/// tokens [N,T], i32 below vocabulary → logits [N·T, vocabulary] for the token behind each: vectors of
/// tokens, `layers` LSTM layers, dense. T must be known. V·D + L·(8·D² + 4·D) + D·V + V parameters: 1,083,969
/// for the options as they are. Throws InvalidArgumentError for options that cannot be.
Output lstm(Scope& s, Output tokens, const LstmOptions& options = {});

// Ratings of items by users from a vector for each: Koren, Bell, Volinsky, "Matrix factorization techniques
// for recommender systems", IEEE Computer 42 (2009), equation 5. A step touches the rows of its users and
// items alone, on all ranks: their gradients travel as rows.

/// Sizes of matrix_factorization.
struct MatrixFactorizationOptions {
  std::int64_t users = 0, items = 0;  // how many there are, ≥ 1
  std::int64_t width = 32;            // of a vector, ≥ 1
  double mean = 0;                    // of the ratings, where that of all biases starts
};

/// users and items: i32 or i64 [N], below options.users and options.items → the rating expected of each pair,
/// f32 [N]: mean + bias of the user + bias of the item + product of their vectors. Variables users/w
/// [users, width + 1] and items/w, a vector with its bias behind it, and mean: (users + items) · (width + 1)
/// + 1 parameters. Vectors start as normal numbers of standard deviation 0.1, biases at 0. Train it with
/// mean_squared_error. Throws InvalidArgumentError for options out of range and other inputs.
Output matrix_factorization(Scope& s, Output users, Output items, const MatrixFactorizationOptions& options);

// Two hidden layers: the smallest model of the zoo, and the one whose time is all matrix products.

/// x [N,…] → logits [N,classes] by two dense layers of 1024 with relu and a third: 784-1024-1024-10 for
/// digits [N,784] or [N,1,28,28], 1,863,690 parameters in fc1, fc2, fc3. Throws InvalidArgumentError unless
/// all but x's first dimension are known.
Output mlp(Scope& s, Output x, std::int64_t classes = 10);

// The residual network for small images: He, Zhang, Ren, Sun, "Deep residual learning for image recognition",
// CVPR 2016, section 4.2, with projections (1×1 convolutions) where a shortcut changes its shape.

/// images x [N,C,H,W] → logits [N,classes]: a 3×3 convolution to 16 channels, three stages of three blocks
/// with 16, 32 and 64 channels, each of two 3×3 convolutions, the mean over the image, dense. Batch
/// normalization follows every convolution (momentum 0.9, epsilon 1e-5); padding is SAME. 272,474 parameters
/// for the 3 channels of CIFAR-10's 32×32 images. Throws InvalidArgumentError unless x has four dimensions
/// and its number of channels is known.
Output resnet20(Scope& s, Output x, std::int64_t classes = 10);

// The residual network for photographs: He, Zhang, Ren, Sun, "Deep residual learning for image recognition",
// CVPR 2016, table 1, as PyTorch's torchvision has it (resnet50, "v1.5": a block's stride is that of its 3×3
// convolution).

/// images x [N,C,H,W] → logits [N,classes]: a 7×7 convolution to 64 channels and a maximum, each with stride
/// 2, four stages of 3, 4, 6 and 3 blocks (1×1, 3×3 and 1×1 convolutions) with 256 to 2048 channels, the mean
/// over the image, dense. Batch normalization follows every convolution (momentum 0.9, epsilon 1e-5).
/// Windows stand where PyTorch puts them: zeros on both sides. 25,557,032 parameters for 3 channels. Throws
/// InvalidArgumentError unless x has four dimensions and its number of channels is known.
Output resnet50(Scope& s, Output x, std::int64_t classes = 1000);

// Simonyan, Zisserman, "Very deep convolutional networks for large-scale image recognition", ICLR 2015,
// table 1, column D, as PyTorch's torchvision has it.

/// images x [N,C,H,W] → logits [N,classes]: thirteen 3×3 convolutions to 64, 128, 256, 512 and 512 channels
/// with a maximum of stride 2 behind each group, two dense layers of 4096 with dropout of one half, and a
/// third. 138,357,544 parameters for 3×224×224. Throws InvalidArgumentError unless x has four dimensions, of
/// which all but the first are known, and is at least 32×32.
Output vgg16(Scope& s, Output x, std::int64_t classes = 1000);

}  // namespace kolo::models
