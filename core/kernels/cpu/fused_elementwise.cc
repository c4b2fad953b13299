#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <kolo/core/base/error.h>
#include <kolo/core/kernels/cpu/element_loops.h>
#include <kolo/core/kernels/cpu/parallel.h>
#include <kolo/core/kernels/element_program.h>
#include <kolo/core/kernels/kernel.h>

namespace kolo {
namespace {

using detail::BinaryOp;
using detail::UnaryOp;

// The very loops of the ops' own kernels: fused or not, an element has the same bits.
detail::UnaryLoop unary_loop(const std::string& op, DType type) {
  static const std::map<std::string, UnaryOp> ops = {
      {"Neg", UnaryOp::neg},         {"Abs", UnaryOp::abs},   {"Sign", UnaryOp::sign},
      {"Square", UnaryOp::square},   {"Sqrt", UnaryOp::sqrt}, {"Rsqrt", UnaryOp::rsqrt},
      {"Exp", UnaryOp::exp},         {"Log", UnaryOp::log},   {"Tanh", UnaryOp::tanh},
      {"Sigmoid", UnaryOp::sigmoid}, {"Relu", UnaryOp::relu}, {"Floor", UnaryOp::floor},
  };
  const auto found = ops.find(op);
  return found == ops.end() ? nullptr : detail::unary_loop(found->second, type);
}

detail::BinaryLoop binary_loop(const std::string& op, DType type) {
  static const std::map<std::string, BinaryOp> ops = {
      {"Add", BinaryOp::add},
      {"AddN", BinaryOp::add},
      {"BiasAdd", BinaryOp::add},
      {"Sub", BinaryOp::sub},
      {"Mul", BinaryOp::mul},
      {"Div", BinaryOp::div},
      {"Maximum", BinaryOp::maximum},
      {"Minimum", BinaryOp::minimum},
      {"Pow", BinaryOp::pow},
      {"TanhGrad", BinaryOp::tanh_grad},
      {"SigmoidGrad", BinaryOp::sigmoid_grad},
      {"ReluGrad", BinaryOp::relu_grad},
  };
  const auto found = ops.find(op);
  return found == ops.end() ? nullptr : detail::binary_loop(found->second, type);
}

constexpr std::int64_t kPiece =
    1024;  // elements: the results of all instructions stay in the first-level cache
using Slot = std::array<std::byte, kPiece * sizeof(double)>;

class FusedElementwise final : public Kernel {
 public:
  FusedElementwise(std::shared_ptr<const ElementProgram> program, DType type)
      : program_(std::move(program)), size_(static_cast<std::int64_t>(size_of(type))) {
    for (const auto& instruction : program_->instructions) {
      const bool is_unary = instruction.operands.size() == 1;
      steps_.push_back({is_unary ? unary_loop(instruction.op, type) : nullptr,
                        is_unary ? nullptr : binary_loop(instruction.op, type), instruction.operands});
      if (steps_.back().unary == nullptr && steps_.back().binary == nullptr)
        throw InternalError("op {} of {} operands cannot be fused", instruction.op,
                            instruction.operands.size());
    }
  }

  void compute(KernelContext& context) override {
    parallel_for(context.output(0).elements(), kElementGrain, [&](std::int64_t begin, std::int64_t end) {
      for (; begin < end; begin += kPiece) run_piece(context, begin, std::min(kPiece, end - begin));
    });
  }

 private:
  struct Step {
    detail::UnaryLoop unary;
    detail::BinaryLoop binary;
    std::vector<ElementProgram::Operand> operands;
  };
  // Elements at `memory`, one for each of the piece (step 1) or one for all (step 0).
  struct View {
    const std::byte* memory;
    std::int64_t step;
  };
  struct Piece {
    std::int64_t begin;
    std::int64_t count;
    std::array<View, kMaxElementInputs> inputs;
    alignas(64) std::array<Slot, kMaxElementInstructions> results;
    alignas(64) std::array<Slot, kMaxElementInputs> repeated;
  };

  void run_piece(const KernelContext& context, std::int64_t begin, std::int64_t count) const {
    Piece piece;  // 200 KiB of stack, of which a program touches what it needs
    piece.begin = begin;
    piece.count = count;
    for (int i = 0; i < context.num_inputs(); ++i)
      piece.inputs[i] = view(context.input(i), program_->inputs[i], piece, piece.repeated[i]);
    for (std::size_t s = 0; s < steps_.size(); ++s) {
      const bool last = s + 1 == steps_.size();
      run(steps_[s], piece, last ? context.output(0).raw() + begin * size_ : piece.results[s].data());
    }
  }

  void run(const Step& step, const Piece& piece, std::byte* out) const {
    const View a = operand(step.operands[0], piece);
    if (step.unary != nullptr) return step.unary(a.memory, out, piece.count);
    // Not both are repeated throughout: the shape that they have together would be too.
    const View b = operand(step.operands[1], piece);
    step.binary(a.memory, a.step, b.memory, b.step, out, piece.count);
  }

  static View operand(const ElementProgram::Operand& operand, const Piece& piece) {
    return operand.is_result ? View{piece.results[operand.index].data(), 1} : piece.inputs[operand.index];
  }

  View view(const Tensor& tensor, const ElementProgram::Input& input, const Piece& piece, Slot& slot) const {
    const auto at = [&](std::int64_t element) {
      return tensor.raw() + (element / input.inner) % input.channels * size_;
    };
    const std::int64_t begin = piece.begin, last = piece.begin + piece.count - 1;
    if (input.channels == 1 || begin / input.inner == last / input.inner) return {at(begin), 0};
    if (input.inner == 1 && begin % input.channels + piece.count <= input.channels) return {at(begin), 1};
    size_ == sizeof(float) ? repeat<std::uint32_t>(tensor, input, piece, slot)
                           : repeat<std::uint64_t>(tensor, input, piece, slot);
    return {slot.data(), 1};
  }

  // The piece's elements of a repeated input, one by one, by runs that need no division. T: as many bytes.
  template <typename T>
  static void repeat(const Tensor& tensor, const ElementProgram::Input& input, const Piece& piece,
                     Slot& slot) {
    const T* source = reinterpret_cast<const T*>(tensor.raw());
    T* out = reinterpret_cast<T*>(slot.data());
    T* const end = out + piece.count;
    std::int64_t channel = piece.begin / input.inner % input.channels;
    if (input.inner == 1) {  // a row, again and again
      for (; out < end; channel = 0) {
        const std::int64_t run = std::min(input.channels - channel, end - out);
        out = std::copy_n(source + channel, run, out);
      }
      return;
    }
    std::int64_t left = input.inner - piece.begin % input.inner;  // of the channel's run
    for (; out < end; left = input.inner) {
      out = std::fill_n(out, std::min(left, end - out), source[channel]);
      if (++channel == input.channels) channel = 0;
    }
  }

  std::shared_ptr<const ElementProgram> program_;
  std::int64_t size_;
  std::vector<Step> steps_;
};

const RegisterKernel fused_elementwise(kFusedElementwiseOp, "CPU",
                                       {DType::f32, DType::f64, DType::i32, DType::i64},
                                       [](KernelInit& init) -> std::unique_ptr<Kernel> {
                                         return std::make_unique<FusedElementwise>(
                                             init.resource<const ElementProgram>(), init.output_dtype(0));
                                       });

}  // namespace

bool is_element_op(const std::string& op, DType type) {
  const bool divides_integers = op == "Div" && is_integer(type);  // by zero, perhaps
  return !divides_integers && (unary_loop(op, type) != nullptr || binary_loop(op, type) != nullptr);
}

}  // namespace kolo
