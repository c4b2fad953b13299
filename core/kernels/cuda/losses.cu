// A warp or a block for each line. It reads the line twice: for the sum of exponentials, and for what is made
// of it.
#include <cmath>
#include <limits>

#include <kolo/core/kernels/cuda/launch_losses.h>
#include <kolo/core/kernels/elements/folds.h>
#include <kolo/core/kernels/cuda/run.cuh>

namespace kolo::cuda {
namespace {

using elements::MaxFold;
using elements::SumFold;

// Longer rows are a block's: a vocabulary's logits are read by 256 threads, not by 32.
constexpr std::int64_t kMostOfAWarp = 1024;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Where the line begins, in elements.
KOLO_HOST_DEVICE std::int64_t line_at(const Lines& lines, std::int64_t line) {
  const auto [outer, column] = elements::divide(line, lines.inner);
  return outer * lines.count * lines.inner + column;
}

struct Exponentials {
  float largest;
  float sum;  // of exp(x − largest)
};
// In one reading (Milakov and Gimelshein, 2018): where a larger x comes, the sum up to it is scaled. That of
// a lane that has met −∞ alone is scaled away; NaN and +∞ make the sum NaN. Summed in pieces: a vocabulary
// has 10^5 numbers.
template <typename Team>
KOLO_HOST_DEVICE Exponentials exponentials_of(const Team& team, const float* x, std::int64_t count,
                                              std::int64_t step) {
  constexpr int kPiece = 64;
  float largest = MaxFold::start<float>(), sum = 0, piece = 0;
  int in_piece = 0;
  for (std::int64_t i = team.lane(); i < count; i += team.lanes()) {
    const float value = x[i * step];
    if (value > largest) {
      const float factor = std::exp(largest - value);
      sum *= factor;
      piece = piece * factor + 1;
      largest = value;
    } else {
      piece += value == largest ? 1 : std::exp(value - largest);
    }
    if (++in_piece < kPiece) continue;
    sum += piece;
    piece = 0;
    in_piece = 0;
  }
  sum += piece;
  const float of_team = team.template fold<MaxFold>(largest);
  return {of_team, team.template fold<SumFold>(sum * std::exp(largest - of_team))};
}

struct SoftmaxWork : SoftmaxArguments {
  template <typename Team>
  KOLO_HOST_DEVICE void operator()(const Team& team, std::int64_t line) const {
    const std::int64_t step = lines.inner, at = line_at(lines, line);
    const auto [largest, sum] = exponentials_of(team, x + at, lines.count, step);
    const float log_sum = std::log(sum);
    // y may be x: each thread reads an element before it writes it, and no other reads it any more.
    for (std::int64_t i = team.lane(); i < lines.count; i += team.lanes()) {
      const float value = x[at + i * step] - largest;
      y[at + i * step] = log ? value - log_sum : std::exp(value) / sum;
    }
  }
  template <typename Visit>
  void operands(const Visit& visit) {
    visit(x, lines.outer * lines.count * lines.inner);
    visit(y, lines.outer * lines.count * lines.inner);
  }
};

struct SoftmaxGradWork : SoftmaxGradArguments {
  template <typename Team>
  KOLO_HOST_DEVICE void operator()(const Team& team, std::int64_t line) const {
    const std::int64_t step = lines.inner, first = line_at(lines, line);
    float sum = 0;
    for (std::int64_t i = team.lane(); i < lines.count; i += team.lanes()) {
      const std::int64_t at = first + i * step;
      sum += log ? dy[at] : y[at] * dy[at];
    }
    sum = team.template fold<SumFold>(sum);
    for (std::int64_t i = team.lane(); i < lines.count; i += team.lanes()) {
      const std::int64_t at = first + i * step;
      dx[at] = log ? dy[at] - std::exp(y[at]) * sum : y[at] * (dy[at] - sum);
    }
  }
  template <typename Visit>
  void operands(const Visit& visit) {
    visit(y, lines.outer * lines.count * lines.inner);
    visit(dy, lines.outer * lines.count * lines.inner);
    visit(dx, lines.outer * lines.count * lines.inner);
  }
};

template <typename Label>
struct CrossEntropyWork : CrossEntropyArguments {
  const Label* label_of;

  template <typename Team>
  KOLO_HOST_DEVICE void operator()(const Team& team, std::int64_t row) const {
    const float* const x = logits + row * classes;
    const auto label = static_cast<std::int64_t>(label_of[row]);
    const bool is_known = label >= 0 && label < classes;
    const auto [largest, sum] = exponentials_of(team, x, classes, 1);
    // Each lane writes over what it alone has yet to read, so the loss is the label's lane's.
    if (is_known && label % team.lanes() == team.lane()) loss[row] = std::log(sum) - (x[label] - largest);
    for (std::int64_t i = team.lane(); i < classes; i += team.lanes()) {
      const float probability = std::exp(x[i] - largest) / sum;
      backprop[row * classes + i] = !is_known ? kNan : (i == label ? probability - 1 : probability) * scale;
    }
    if (is_known || team.lane() != 0) return;
    loss[row] = kNan;
    elements::note_bad_value(bad, row, label);
  }
  template <typename Visit>
  void operands(const Visit& visit) {
    visit(logits, rows * classes);
    visit(label_of, rows);
    visit(loss, rows);
    visit(backprop, rows * classes);
  }
};

template <typename Label>
cudaError_t cross_entropy(cudaStream_t stream, const CrossEntropyArguments& arguments) {
  const CrossEntropyWork<Label> work{arguments, static_cast<const Label*>(arguments.labels)};
  return arguments.classes > kMostOfAWarp ? run_blocks("cross_entropy", stream, arguments.rows, work)
                                          : run_rows("cross_entropy", stream, arguments.rows, work);
}

}  // namespace

cudaError_t launch_softmax(cudaStream_t stream, const SoftmaxArguments& arguments) {
  const std::int64_t lines = arguments.lines.count == 0 ? 0 : arguments.lines.outer * arguments.lines.inner;
  return run_rows("softmax", stream, lines, SoftmaxWork{arguments});
}

cudaError_t launch_softmax_grad(cudaStream_t stream, const SoftmaxGradArguments& arguments) {
  const std::int64_t lines = arguments.lines.count == 0 ? 0 : arguments.lines.outer * arguments.lines.inner;
  return run_rows("softmax_grad", stream, lines, SoftmaxGradWork{arguments});
}

cudaError_t launch_cross_entropy(cudaStream_t stream, const CrossEntropyArguments& arguments) {
  switch (arguments.label_type) {
    case ElementType::i32: return cross_entropy<std::int32_t>(stream, arguments);
    case ElementType::i64: return cross_entropy<std::int64_t>(stream, arguments);
    default: return cudaErrorInvalidValue;
  }
}

}  // namespace kolo::cuda
