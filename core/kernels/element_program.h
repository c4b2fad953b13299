// What a fused element-wise kernel computes: several ops on one element before it goes to the next.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <kolo/core/tensor/dtype.h>

namespace kolo {

/// The op that runs one; only the fusing pass makes nodes of it, with the program as their resource.
inline constexpr char kFusedElementwiseOp[] = "FusedElementwise";

struct ElementProgram {
  /// How often an input is repeated: element i of the output meets its element (i / inner) % channels. In
  /// blocked order (core/ops/blocked.h) i counts whole blocks of channels, of which it meets each element.
  struct Input {
    std::int64_t channels = 1;
    std::int64_t inner = 1;
    std::int64_t block = 1;
    bool operator==(const Input&) const = default;
  };
  /// An input of the node, or the result of an earlier instruction.
  struct Operand {
    bool is_result = false;
    int index = 0;
  };
  struct Instruction {
    std::string op;  // one that is_element_op knows
    std::vector<Operand> operands;
  };

  std::vector<Input> inputs;
  std::vector<Instruction> instructions;  // the last one gives the output
};

/// The most instructions, and the most inputs, of a program.
inline constexpr int kMaxElementInstructions = 12;
inline constexpr int kMaxElementInputs = 12;

/// True if nodes of this op and type can be instructions: their kernel treats each element by itself, and no
/// element can make it fail.
bool is_element_op(const std::string& op, DType type);

}  // namespace kolo
