#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <kolo/core/base/error.h>
#include <kolo/core/kernels/cpu/element_types.h>
#include <kolo/core/kernels/cpu/loops/element_loops.h>
#include <kolo/core/kernels/cpu/parallel_rows.h>
#include <kolo/core/kernels/element_program.h>
#include <kolo/core/kernels/elements/cast.h>
#include <kolo/core/kernels/elements/table.h>
#include <kolo/core/kernels/kernel.h>
#include <kolo/core/kernels/parallel.h>
#include <kolo/core/ops/blocked.h>
#include <kolo/core/ops/dtypes.h>

namespace kolo {
namespace {

// Sums two inputs at a time into the output, piece by piece, so that the output's piece stays in the cache
// meanwhile.
class AddNKernel final : public Kernel {
 public:
  explicit AddNKernel(DType type) : add_(detail::binary_loop("Add", type)) {}
  void compute(KernelContext& context) override {
    const Tensor& y = context.output(0);
    for (int i = 1; i < context.num_inputs(); ++i)
      if (context.input(i).shape() != y.shape())
        throw InvalidArgumentError("AddN: input 0 is {} and input {} is {}; all must have one shape",
                                   context.input(0).shape(), i, context.input(i).shape());
    if (context.num_inputs() == 1) {
      if (y.raw() != context.input(0).raw()) y.copy_from(context.input(0));
      return;
    }
    parallel_for(y.elements(), kElementGrain, [&](std::int64_t begin, std::int64_t end) {
      for (; begin < end; begin += kPiece) add_piece(context, begin, std::min(kPiece, end - begin));
    });
  }

 private:
  static constexpr std::int64_t kPiece = 4096;
  void add_piece(const KernelContext& context, std::int64_t begin, std::int64_t count) const {
    const Tensor& y = context.output(0);
    const auto at = begin * static_cast<std::int64_t>(size_of(y.dtype()));
    add_(context.input(0).raw() + at, 1, context.input(1).raw() + at, 1, y.raw() + at, count);
    for (int i = 2; i < context.num_inputs(); ++i)
      add_(y.raw() + at, 1, context.input(i).raw() + at, 1, y.raw() + at, count);
  }
  detail::BinaryLoop add_;
};

const RegisterKernel add_n("AddN", "CPU", detail::kArithmetic,
                           [](KernelInit& init) -> std::unique_ptr<Kernel> {
                             return std::make_unique<AddNKernel>(init.input_dtype(0));
                           });

// One of the two operands, as bits: the element type does not matter, only its size.
template <typename Bits>
void select_bits(KernelContext& context) {
  const Tensor& out = context.output(0);
  const auto* condition = context.input(0).data<bool>();
  const auto* a = reinterpret_cast<const Bits*>(context.input(1).raw());
  const auto* b = reinterpret_cast<const Bits*>(context.input(2).raw());
  auto* y = reinterpret_cast<Bits*>(out.raw());
  const auto index = detail::broadcast_index_to(out.shape(), context.input(0).shape(),
                                                context.input(1).shape(), context.input(2).shape());
  const auto [condition_step, a_step, b_step] = index.row_strides();
  const bool dense = condition_step == 1 && a_step == 1 && b_step == 1;
  detail::parallel_rows(index, [&, condition_step = condition_step, a_step = a_step, b_step = b_step](
                                   std::int64_t at, const auto& from, std::int64_t count) {
    const bool* chosen = condition + from[0];
    const Bits *left = a + from[1], *right = b + from[2];
    Bits* to = y + at;
    if (dense)
      for (std::int64_t i = 0; i < count; ++i) to[i] = chosen[i] ? left[i] : right[i];
    else
      for (std::int64_t i = 0; i < count; ++i)
        to[i] = chosen[i * condition_step] ? left[i * a_step] : right[i * b_step];
  });
}

void select(KernelContext& context) {
  switch (size_of(context.output(0).dtype())) {
    case 1: return select_bits<std::uint8_t>(context);
    case 2: return select_bits<std::uint16_t>(context);
    case 4: return select_bits<std::uint32_t>(context);
    default: return select_bits<std::uint64_t>(context);
  }
}

const RegisterKernel select_kernel("Select", "CPU", {}, select);

void cast(KernelContext& context) {
  const Tensor& x = context.input(0);
  const Tensor& y = context.output(0);
  detail::with_type(x.dtype(), [&](auto from_tag) {
    detail::with_type(y.dtype(), [&](auto to_tag) {
      using From = typename decltype(from_tag)::type;
      using To = typename decltype(to_tag)::type;
      const From* from = x.data<From>();
      To* to = y.data<To>();
      parallel_for(x.elements(), kElementGrain, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) to[i] = elements::Cast<To>()(from[i]);
      });
    });
  });
}

const RegisterKernel cast_kernel("Cast", "CPU", {}, cast);

// Whether the table lets the op of this name be fused.
template <typename Ops>
bool may_fuse(const std::string& op) {
  bool may = false;
  Ops::at(Ops::index(op), [&](auto row) { may = decltype(row)::type::kMayFuse; });
  return may;
}

// The very loops of the ops' own kernels: fused or not, an element has the same bits.
detail::UnaryLoop unary_loop(const std::string& op, DType type) {
  return may_fuse<elements::UnaryOps>(op) ? detail::unary_loop(op, type) : nullptr;
}
detail::BinaryLoop binary_loop(const std::string& op, DType type) {
  const bool adds = op == "AddN" || op == "BiasAdd" || op == kBlockedBiasAddOp;
  const std::string name = adds ? "Add" : op;
  return may_fuse<elements::BinaryOps>(name) ? detail::binary_loop(name, type) : nullptr;
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
    if (input.block > 1) {
      const auto loop = input.block == 8 ? repeat_blocks<8> : repeat_blocks<16>;
      loop(tensor.data<float>(), input, piece, reinterpret_cast<float*>(slot.data()));
      return {slot.data(), 1};
    }
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

  // f32 alone lies in blocks. A piece may begin within one.
  template <std::int64_t kBlock>
  static void repeat_blocks(const float* source, const ElementProgram::Input& input, const Piece& piece,
                            float* out) {
    const float* const end = out + piece.count;
    std::int64_t lane = piece.begin % kBlock, left = input.inner - piece.begin / kBlock % input.inner;
    std::int64_t channel = piece.begin / (kBlock * input.inner) * kBlock % input.channels;
    while (out < end) {
      if (lane == 0 && out + kBlock <= end) out = std::copy_n(source + channel, kBlock, out);
      else out = std::copy_n(source + channel + lane, std::min<std::int64_t>(kBlock - lane, end - out), out);
      lane = 0;
      if (--left > 0) continue;
      left = input.inner;
      channel += kBlock;
      if (channel == input.channels) channel = 0;
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
