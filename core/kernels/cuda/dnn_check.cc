#include <kolo/core/kernels/cuda/dnn_check.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include <kolo/core/device/cuda/check_cuda.h>
#include <kolo/core/kernels/cuda/launch_distance.h>
#include <kolo/core/kernels/cuda/launch_random.h>

namespace kolo::cuda {
namespace {

// ‖difference‖ ÷ ‖result‖. Sums in f32 of up to 10⁶ products come to 2e-5, TF32's products to 2e-4, whatever
// their number; where TF32 is asked for, products that are cut instead of rounded come to 6e-4.
constexpr double kOfF32 = 5e-5, kOfTf32 = 2e-3;

// Products of kolo's kernel: 2 ms of an H100, 20 for a gradient, 40 for that of strided images. Of larger
// batches some images are computed.
constexpr std::int64_t kMostProducts = std::int64_t{1} << 31;

Shape images_of(const Convolution& shape) {
  return {shape.batch, std::int64_t{shape.groups} * shape.channels, shape.rows.size, shape.cols.size};
}
Shape results_of(const Convolution& shape) {
  return {shape.batch, shape.filters, shape.rows.outputs, shape.cols.outputs};
}

// Images that are computed.
std::int64_t enough(const Convolution& shape) {
  const std::int64_t products = results_of(shape).elements() / std::max<std::int64_t>(1, shape.batch) *
                                shape.channels * shape.rows.window * shape.cols.window;
  return std::clamp<std::int64_t>(kMostProducts / std::max<std::int64_t>(1, products), 1, shape.batch);
}

}  // namespace

ConvolutionCheck::ConvolutionCheck(const CudaApi& api, Allocator& memory, ConvolutionPass pass,
                                   const Convolution& shape, bool allow_tf32)
    : api_(api),
      memory_(memory),
      stream_(api),
      pass_(pass),
      limit_(allow_tf32 ? kOfTf32 : kOfF32),
      images_(DType::f32, images_of(shape), memory),
      weights_(DType::f32, {shape.filters, shape.channels, shape.rows.window, shape.cols.window}, memory),
      results_(DType::f32, results_of(shape), memory),
      squares_(DType::f64, {2 * kDistanceParts}, memory) {
  const auto randomize = [&](const Tensor& tensor, std::uint64_t seed) {
    check_cuda(launch_random(stream_.get(), {.of = {.seed = 1, .op_seed = seed, .position = 0},
                                             .distribution = Distribution::uniform,
                                             .first = -1,
                                             .second = 1,
                                             .y = tensor.data<float>(),
                                             .elements = tensor.elements()}),
               "random numbers");
  };
  Convolution part = shape;
  part.batch = enough(shape);
  const std::int64_t left_out = shape.batch - part.batch;
  float* const images = images_.data<float>();
  float* const weights = weights_.data<float>();
  float* const results = results_.data<float>();
  if (pass != ConvolutionPass::images) randomize(images_, 1);
  if (pass != ConvolutionPass::weights) randomize(weights_, 2);
  if (pass != ConvolutionPass::results) randomize(results_, 3);
  switch (pass) {
    case ConvolutionPass::results:
      check_cuda(launch_convolution(stream_.get(), {part, images, weights, results}), "conv2d");
      compared_ = results_of(part).elements();
      break;
    case ConvolutionPass::images:
      check_cuda(launch_convolution_images(stream_.get(), {part, weights, results, images}),
                 "the gradient of conv2d's images");
      compared_ = images_of(part).elements();
      break;
    case ConvolutionPass::weights: {
      // All images are in each sum: those that are left out add nothing.
      const std::int64_t kept = results_of(part).elements();
      if (left_out > 0)
        check_cuda(api.memset_async(results + kept, 0,
                                    static_cast<std::size_t>(results_.elements() - kept) * sizeof(float),
                                    stream_.get()),
                   "cudaMemsetAsync");
      check_cuda(launch_convolution_weights(stream_.get(), {part, images, results, weights}),
                 "the gradient of conv2d's weights");
      compared_ = weights_.elements();
      break;
    }
  }
}

double ConvolutionCheck::distance(const Tensor& x, const Tensor& expected) {
  check_cuda(launch_distance(stream_.get(), {.x = x.data<float>(),
                                             .expected = expected.data<float>(),
                                             .elements = compared_,
                                             .squares = squares_.data<double>()}),
             "a distance");
  std::vector<double> squares(static_cast<std::size_t>(squares_.elements()));
  check_cuda(api_.memcpy_async(squares.data(), squares_.raw(), squares_.bytes(), cudaMemcpyDeviceToHost,
                               stream_.get()),
             "cudaMemcpyAsync");
  check_cuda(api_.stream_synchronize(stream_.get()), "cudaStreamSynchronize");
  double apart = 0, whole = 0;
  for (std::size_t part = 0; part < squares.size(); part += 2) {
    apart += squares[part];
    whole += squares[part + 1];
  }
  return apart == 0 ? 0 : std::sqrt(apart / whole);
}

void ConvolutionCheck::run_into(const Tensor& made, const Run& run, const Tensor& workspace) {
  // All bits set are a NaN: what an engine leaves out shows.
  check_cuda(api_.memset_async(made.raw(), 0xff, made.bytes(), stream_.get()), "cudaMemsetAsync");
  const auto operand = [&](ConvolutionPass makes, const Tensor& other) {
    return pass_ == makes ? made.raw() : other.raw();
  };
  run(stream_.get(), {.images = operand(ConvolutionPass::images, images_),
                      .weights = operand(ConvolutionPass::weights, weights_),
                      .results = operand(ConvolutionPass::results, results_),
                      .workspace = workspace.bytes() == 0 ? nullptr : workspace.raw()});
}

std::string ConvolutionCheck::fault_of(const Run& run, std::int64_t workspace_bytes) {
  const Tensor& expected = pass_ == ConvolutionPass::results  ? results_
                           : pass_ == ConvolutionPass::images ? images_
                                                              : weights_;
  const Tensor workspace(DType::u8, {workspace_bytes}, memory_);
  const Tensor made(DType::f32, expected.shape(), memory_), again(DType::f32, expected.shape(), memory_);
  run_into(made, run, workspace);
  const double off = distance(made, expected);
  if (std::isnan(off)) return "leaves results unwritten, or makes NaN of numbers";
  if (!(off <= limit_)) return fmt::format("is off by {:.1e} of the result, by norms", off);
  run_into(again, run, workspace);
  return distance(again, made) == 0 ? "" : "gives other bits in a second run";
}

}  // namespace kolo::cuda
