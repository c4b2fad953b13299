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

// ‖difference‖ ÷ ‖result‖. Sums in f32, one by one, of the most products that are added up here come to 3e-5,
// TF32's products to 2e-4, whatever their number, and to 6e-4 where they are cut instead of rounded.
constexpr double kOfF32 = 5e-5, kOfTf32 = 1e-3;
constexpr std::int64_t kMostAddedUp = std::int64_t{1} << 20;

// An engine that adds by atomics gives the same bits in one of twenty runs.
constexpr int kRuns = 5;

std::int64_t map_of(const Convolution& shape) {
  return std::int64_t{shape.rows.outputs} * shape.cols.outputs;
}
Shape images_of(const Convolution& shape) {
  return {shape.batch, std::int64_t{shape.groups} * shape.channels, shape.rows.size, shape.cols.size};
}
Shape results_of(const Convolution& shape) {
  return {shape.batch, shape.filters, shape.rows.outputs, shape.cols.outputs};
}

std::int64_t enough(ConvolutionPass pass, const Convolution& shape, std::int64_t most_products) {
  const std::int64_t map = std::max<std::int64_t>(1, map_of(shape));
  const std::int64_t products =
      std::max<std::int64_t>(1, map * shape.filters * shape.channels * shape.rows.window * shape.cols.window);
  std::int64_t images = most_products / products;
  if (pass == ConvolutionPass::weights) images = std::min(images, kMostAddedUp / map);
  return std::clamp<std::int64_t>(images, 1, shape.batch);
}

// Errors of a sum grow with the root of what is added up.
double limit_of(ConvolutionPass pass, const Convolution& shape, std::int64_t images, bool allow_tf32) {
  if (allow_tf32) return kOfTf32;
  const double added_up = pass == ConvolutionPass::weights ? static_cast<double>(images * map_of(shape)) : 0;
  return kOfF32 * std::sqrt(std::max(1.0, added_up / static_cast<double>(kMostAddedUp)));
}

}  // namespace

void convolve_directly(cudaStream_t stream, ConvolutionPass pass, const Convolution& shape, float* images,
                       float* weights, float* results) {
  switch (pass) {
    case ConvolutionPass::results:
      return check_cuda(launch_convolution(stream, {shape, images, weights, results}), "conv2d");
    case ConvolutionPass::images:
      return check_cuda(launch_convolution_images(stream, {shape, weights, results, images}),
                        "the gradient of conv2d's images");
    case ConvolutionPass::weights:
      return check_cuda(launch_convolution_weights(stream, {shape, images, results, weights}),
                        "the gradient of conv2d's weights");
  }
}

// What it needs is taken before anything is queued, so that nothing is given back under a kernel.
ConvolutionCheck::ConvolutionCheck(const CudaApi& api, Allocator& memory, ConvolutionPass pass,
                                   const Convolution& shape, bool allow_tf32, std::int64_t most_products)
    : api_(api),
      memory_(memory),
      stream_(api),
      pass_(pass),
      shape_(shape),
      computed_(enough(pass, shape, most_products)),
      limit_(limit_of(pass, shape, computed_, allow_tf32)),
      images_(DType::f32, images_of(shape), memory),
      weights_(DType::f32, {shape.filters, shape.channels, shape.rows.window, shape.cols.window}, memory),
      results_(DType::f32, results_of(shape), memory),
      made_(DType::f32, made_by_kolo().shape(), memory),
      again_(DType::f32, made_by_kolo().shape(), memory),
      squares_(DType::f64, {2 * kDistanceParts}, memory),
      workspace_(DType::u8, {0}, memory) {}

const Tensor& ConvolutionCheck::made_by_kolo() const {
  return pass_ == ConvolutionPass::results ? results_ : pass_ == ConvolutionPass::images ? images_ : weights_;
}

void ConvolutionCheck::prepare() {
  const auto randomize = [&](ConvolutionPass makes, const Tensor& tensor) {
    if (pass_ == makes) return;
    check_cuda(launch_random(stream_.get(),
                             {.of = {.seed = 1, .op_seed = static_cast<std::uint64_t>(makes), .position = 0},
                              .distribution = Distribution::uniform,
                              .first = -1,
                              .second = 1,
                              .y = tensor.data<float>(),
                              .elements = tensor.elements()}),
               "random numbers");
  };
  randomize(ConvolutionPass::images, images_);
  randomize(ConvolutionPass::weights, weights_);
  randomize(ConvolutionPass::results, results_);
  Convolution part = shape_;
  part.batch = computed_;
  const std::int64_t left_out = shape_.batch - computed_;
  const std::int64_t of_images = left_out * (images_.elements() / shape_.batch),
                     of_results = left_out * (results_.elements() / shape_.batch);
  // All images are in each sum of the weights' gradients: those that are left out add nothing.
  if (pass_ == ConvolutionPass::weights && left_out > 0)
    check_cuda(api_.memset_async(results_.raw(), 0, static_cast<std::size_t>(of_results) * sizeof(float),
                                 stream_.get()),
               "cudaMemsetAsync");
  convolve_directly(stream_.get(), pass_, part, images_.data<float>() + of_images, weights_.data<float>(),
                    results_.data<float>() + of_results);
  prepared_ = true;
}

ConvolutionCheck::Distance ConvolutionCheck::distance(const float* x, const float* expected,
                                                      std::int64_t elements) {
  check_cuda(launch_distance(
                 stream_.get(),
                 {.x = x, .expected = expected, .elements = elements, .squares = squares_.data<double>()}),
             "a distance");
  std::vector<double> squares(static_cast<std::size_t>(squares_.elements()));
  check_cuda(api_.memcpy_async(squares.data(), squares_.raw(), squares_.bytes(), cudaMemcpyDeviceToHost,
                               stream_.get()),
             "cudaMemcpyAsync");
  check_cuda(api_.stream_synchronize(stream_.get()), "cudaStreamSynchronize");
  Distance sum{0, 0};
  for (std::size_t part = 0; part < squares.size(); part += 2) {
    sum.apart += squares[part];
    sum.whole += squares[part + 1];
  }
  return sum;
}

void ConvolutionCheck::run_into(const Tensor& made, const Run& run) {
  // All bits set are a NaN: what an engine leaves out shows, and what it takes for cleared.
  for (const Tensor* const tensor : {&made, &std::as_const(workspace_)})
    if (tensor->bytes() > 0)
      check_cuda(api_.memset_async(tensor->raw(), 0xff, tensor->bytes(), stream_.get()), "cudaMemsetAsync");
  put(made, run);
}

void ConvolutionCheck::put(const Tensor& made, const Run& run) {
  const auto operand = [&](ConvolutionPass makes, const Tensor& other) {
    return pass_ == makes ? made.raw() : other.raw();
  };
  run(stream_.get(), {.images = operand(ConvolutionPass::images, images_),
                      .weights = operand(ConvolutionPass::weights, weights_),
                      .results = operand(ConvolutionPass::results, results_),
                      .workspace = workspace_.bytes() == 0 ? nullptr : workspace_.raw()});
}

// Whatever ends it, the caller may give back the engine's plan, and the check itself.
double ConvolutionCheck::time_of(const Run& run, std::int64_t workspace_bytes) {
  const IdleAtEnd idle{api_, stream_.get()};
  workspace_ = {};  // before the next one is taken
  workspace_ = Tensor(DType::u8, {workspace_bytes}, memory_);
  if (!prepared_) prepare();
  run_into(made_, run);
  return time_of_three(api_, stream_.get(), [&] { put(made_, run); });
}

std::string ConvolutionCheck::fault_of(const Run& run, std::int64_t workspace_bytes) {
  const IdleAtEnd idle{api_, stream_.get()};
  workspace_ = {};  // before the next one is taken
  workspace_ = Tensor(DType::u8, {workspace_bytes}, memory_);
  if (!prepared_) prepare();
  run_into(made_, run);
  const std::int64_t elements = made_.elements();
  const bool of_all = pass_ == ConvolutionPass::weights;
  const std::int64_t first = of_all ? 0 : elements / shape_.batch * (shape_.batch - computed_);
  const auto [apart, whole] =
      distance(made_.data<float>() + first, made_by_kolo().data<float>() + first, elements - first);
  if (std::isnan(apart)) return "leaves results unwritten, or makes NaN of numbers";
  if (!(apart <= limit_ * limit_ * whole))
    return fmt::format("is off by {:.1e} of the result, by norms", std::sqrt(apart / whole));
  for (int runs = 1; runs < kRuns; ++runs) {
    run_into(again_, run);
    const double differs = distance(again_.data<float>(), made_.data<float>(), elements).apart;
    if (std::isnan(differs)) return "leaves results unwritten, or makes NaN of numbers";
    if (differs != 0) return "gives other bits in another run";
  }
  return "";
}

}  // namespace kolo::cuda
