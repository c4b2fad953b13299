#include <algorithm>

#include <kolo/core/kernels/cuda/launch_random.h>
#include <kolo/core/kernels/elements/philox.h>
#include <kolo/core/kernels/elements/random.h>
#include <kolo/core/kernels/cuda/run.cuh>

namespace kolo::cuda {
namespace {

KOLO_HOST_DEVICE std::array<std::uint32_t, 4> block_of(const RandomSequence& of, std::int64_t block) {
  const std::uint64_t first = of.position_at != nullptr ? *of.position_at : of.position;
  return detail::PhiloxBlocks(of.seed, of.op_seed).block(first + static_cast<std::uint64_t>(block));
}
template <typename Visit>
void operand(const Visit& visit, RandomSequence& of) {
  if (of.position_at != nullptr) visit(of.position_at, 1);
}
constexpr int kPerBlock = 4;
std::int64_t blocks(std::int64_t elements) { return (elements + kPerBlock - 1) / kPerBlock; }

template <typename Numbers>
struct RandomWork : RandomArguments {
  KOLO_HOST_DEVICE void operator()(std::int64_t block) const {
    float values[kPerBlock];
    Numbers{first, second}.fill(block_of(of, block), values);
    for (int k = 0; k < kPerBlock; ++k)
      if (kPerBlock * block + k < elements) y[kPerBlock * block + k] = values[k];
  }
  template <typename Visit>
  void operands(const Visit& visit) {
    visit(y, elements);
    operand(visit, of);
  }
};

struct NoiseWork : NoiseArguments {
  KOLO_HOST_DEVICE void operator()(std::int64_t block) const {
    float values[kPerBlock];
    elements::Normal{0, stddev}.fill(block_of(of, block), values);
    for (int k = 0; k < kPerBlock; ++k) {
      const std::int64_t i = kPerBlock * block + k;
      if (i < elements) y[i] = x[i] + values[k];
    }
  }
  template <typename Visit>
  void operands(const Visit& visit) {
    visit(x, elements);
    visit(y, elements);
    operand(visit, of);
  }
};

struct DropoutWork : DropoutArguments {
  KOLO_HOST_DEVICE void operator()(std::int64_t block) const {
    const std::array<std::uint32_t, 4> words = block_of(of, block);
    for (int k = 0; k < kPerBlock; ++k) {
      const std::int64_t i = kPerBlock * block + k;
      if (i >= elements) break;
      const bool is_kept = words[static_cast<std::size_t>(k)] >= first_kept;
      kept[i] = is_kept ? 1 : 0;
      y[i] = is_kept ? x[i] * scale : 0;
    }
  }
  template <typename Visit>
  void operands(const Visit& visit) {
    visit(x, elements);
    visit(y, elements);
    visit(kept, elements);
    operand(visit, of);
  }
};

struct DropoutGradWork : DropoutGradArguments {
  KOLO_HOST_DEVICE void operator()(std::int64_t i) const { dx[i] = kept[i] != 0 ? dy[i] * scale : 0; }
  template <typename Visit>
  void operands(const Visit& visit) {
    visit(dy, elements);
    visit(kept, elements);
    visit(dx, elements);
  }
};

// As many as are well below what a kernel's arguments may be.
constexpr std::size_t kNumbersAtOnce = 64;
struct NumbersWork {
  StepNumber numbers[kNumbersAtOnce];
  std::int64_t count;
  KOLO_HOST_DEVICE void operator()(std::int64_t i) const { *numbers[i].at = numbers[i].value; }
  template <typename Visit>
  void operands(const Visit& visit) {
    for (std::int64_t i = 0; i < count; ++i) visit(numbers[i].at, 1);
  }
};

template <typename Numbers>
cudaError_t random(cudaStream_t stream, const RandomArguments& arguments) {
  return run_each("random", stream, blocks(arguments.elements), RandomWork<Numbers>{arguments});
}

}  // namespace

cudaError_t launch_numbers(cudaStream_t stream, std::span<const StepNumber> numbers) {
  for (cudaError_t code = cudaSuccess; !numbers.empty();) {
    NumbersWork work = {};
    work.count = static_cast<std::int64_t>(std::min(numbers.size(), kNumbersAtOnce));
    std::copy_n(numbers.begin(), work.count, work.numbers);
    code = run_each("numbers", stream, work.count, work);
    if (code != cudaSuccess) return code;
    numbers = numbers.subspan(static_cast<std::size_t>(work.count));
  }
  return cudaSuccess;
}

cudaError_t launch_random(cudaStream_t stream, const RandomArguments& arguments) {
  switch (arguments.distribution) {
    case Distribution::uniform: return random<elements::Uniform>(stream, arguments);
    case Distribution::normal: return random<elements::Normal>(stream, arguments);
    case Distribution::truncated_normal: return random<elements::TruncatedNormal>(stream, arguments);
  }
  return cudaErrorInvalidValue;
}

cudaError_t launch_noise(cudaStream_t stream, const NoiseArguments& arguments) {
  return run_each("noise", stream, blocks(arguments.elements), NoiseWork{arguments});
}

cudaError_t launch_dropout(cudaStream_t stream, const DropoutArguments& arguments) {
  return run_each("dropout", stream, blocks(arguments.elements), DropoutWork{arguments});
}

cudaError_t launch_dropout_grad(cudaStream_t stream, const DropoutGradArguments& arguments) {
  return run_each("dropout_grad", stream, arguments.elements, DropoutGradWork{arguments});
}

}  // namespace kolo::cuda
