// Every registered op has its value, its shape function and, where it has one, its gradient checked by some
// test. ctest runs this behind the programs that check ops (a fixture); they write down what they check.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <sstream>
#include <string>

#include <kolo/core/graph/op_schema.h>

#include "tests/core/op_checks.h"

namespace kolo {
namespace {

using Checks = std::set<std::string>;  // "Add value"

std::string check_of(const std::string& op, OpCheck check) { return op + ' ' + name(check); }

Checks recorded_checks() {
  Checks checks;
  std::istringstream programs(KOLO_OP_TESTS);
  for (std::string program; programs >> program;) {
    std::ifstream file(op_checks_folder() / program);
    for (std::string line; std::getline(file, line);) checks.insert(line);
  }
  return checks;
}

// What cannot be checked by a test program of its own process, with the reason.
const std::map<std::string, const char*> kExempt = {
    {"AddRows shape", "made by a pass, with shapes that are known"},
    {"AddRows value", "made by a pass: tests/core/passes/add_rows_test.cc"},
    {"Bf16MatMul shape", "made by a pass, with shapes that are known"},
    {"Bf16MatMul value", "made by a pass: tests/core/ops/precision_test.cc"},
    {"BlockedAvgPool shape", "made by a pass, with shapes that are known"},
    {"BlockedAvgPool value", "made by a pass: tests/core/passes/layout_test.cc"},
    {"BlockedAvgPoolGrad shape", "made by a pass, with shapes that are known"},
    {"BlockedAvgPoolGrad value", "made by a pass: tests/core/passes/layout_test.cc"},
    {"BlockedBatchNorm shape", "made by a pass, with shapes that are known"},
    {"BlockedBatchNorm value", "made by a pass: tests/core/passes/layout_test.cc"},
    {"BlockedBatchNormGrad shape", "made by a pass, with shapes that are known"},
    {"BlockedBatchNormGrad value", "made by a pass: tests/core/passes/layout_test.cc"},
    {"BlockedBatchNormInference shape", "made by a pass, with shapes that are known"},
    {"BlockedBatchNormInference value", "made by a pass: tests/core/passes/layout_test.cc"},
    {"BlockedBiasAdd shape", "made by a pass, with shapes that are known"},
    {"BlockedBiasAdd value", "made by a pass: tests/core/passes/layout_test.cc"},
    {"BlockedBiasAddGrad shape", "made by a pass, with shapes that are known"},
    {"BlockedBiasAddGrad value", "made by a pass: tests/core/passes/layout_test.cc"},
    {"BlockedConv2D shape", "made by a pass, with shapes that are known"},
    {"BlockedConv2D value", "made by a pass: tests/core/passes/layout_test.cc"},
    {"BlockedConv2DBackpropFilter shape", "made by a pass, with shapes that are known"},
    {"BlockedConv2DBackpropFilter value", "made by a pass: tests/core/passes/layout_test.cc"},
    {"BlockedConv2DBackpropInput shape", "made by a pass, with shapes that are known"},
    {"BlockedConv2DBackpropInput value", "made by a pass: tests/core/passes/layout_test.cc"},
    {"BlockedMaxPool shape", "made by a pass, with shapes that are known"},
    {"BlockedMaxPool value", "made by a pass: tests/core/passes/layout_test.cc"},
    {"BlockedMaxPoolGrad shape", "made by a pass, with shapes that are known"},
    {"BlockedMaxPoolGrad value", "made by a pass: tests/core/passes/layout_test.cc"},
    {"BlockedPad shape", "made by a pass, with shapes that are known"},
    {"BlockedPad value", "made by a pass: tests/core/passes/narrow_images_test.cc"},
    {"BlockedSlice shape", "made by a pass, with shapes that are known"},
    {"BlockedSlice value", "made by a pass: tests/core/passes/narrow_images_test.cc"},
    {"BucketAllGather value", "needs several ranks: tests/mpi"},
    {"BucketAllGather shape", "made by a pass, with shapes that are known"},
    {"BucketAllReduce value", "needs several ranks: tests/mpi"},
    {"BucketAllReduce shape", "made by a pass, with shapes that are known"},
    {"BucketReduceScatter value", "needs several ranks: tests/mpi"},
    {"BucketReduceScatter shape", "made by a pass, with shapes that are known"},
    {"ShareFactors value", "has no output; what it shares: tests/mpi/shared_factors_test.cc"},
    {"ShareFactors shape", "has no output"},
    {"ProductOfRanks value", "of several ranks: tests/mpi/shared_factors_test.cc"},
    {"ProductOfRanks shape", "made by a pass, of shapes that are known"},
    {"BucketsWritable value", "has no output; what it holds back: tests/mpi/schedule_test.cc"},
    {"BucketsWritable shape", "has no output"},
    {"Feed value", "stands for a fed tensor inside a step; every fed test reads one"},
    {"Feed shape", "takes the fed tensor's"},
    {"FromBf16 shape", "made by a pass, with shapes that are known"},
    {"FromBf16 value", "made by a pass: tests/core/passes/narrow_images_test.cc"},
    {"FusedElementwise value", "made by a pass: tests/core/passes/fuse_elementwise_test.cc"},
    {"FusedElementwise shape", "made by a pass, with a shape that is known"},
    {"GatherRows shape", "made by a pass, with shapes that are known"},
    {"GatherRows value", "needs several ranks: tests/mpi"},
    {"GatherShards value", "needs several ranks: tests/mpi"},
    {"GroupAllReduce value", "needs several ranks: tests/mpi"},
    {"NoOp value", "has none"},
    {"NoOp shape", "has none"},
    {"Placeholder value", "has none: it is fed"},
    {"ScaledSparseSoftmaxCrossEntropy shape", "made by a pass, with shapes that are known"},
    {"ScaledSparseSoftmaxCrossEntropy value", "made by a pass: tests/core/passes/fuse_losses_test.cc"},
    {"ShardOf shape", "has none"},
    {"ShardOf value", "has none: it is a note, never run"},
    {"SliceOf shape", "has none"},
    {"SliceOf value", "has none: it is a note, never run"},
    {"SumLayerNorm shape", "made by a pass, with shapes that are known"},
    {"SumLayerNorm value", "made by a pass: tests/core/passes/fuse_norms_test.cc"},
    {"SumLayerNormGrad shape", "made by a pass, with shapes that are known"},
    {"SumLayerNormGrad value", "made by a pass: tests/core/passes/fuse_norms_test.cc"},
    {"ToBf16 shape", "made by a pass, with shapes that are known"},
    {"ToBf16 value", "made by a pass: tests/core/ops/precision_test.cc"},
    {"ToBlocked shape", "made by a pass, with shapes that are known"},
    {"ToBlocked value", "made by a pass: tests/core/passes/layout_test.cc"},
    {"ToRowMajor shape", "made by a pass, with shapes that are known"},
    {"ToRowMajor value", "made by a pass: tests/core/passes/layout_test.cc"},
    {"Variable value", "is a place, read through Identity"},
    {"VariablePart value", "is a place, read through Identity"},
    {"_Fence shape", "has none"},
    {"_Fence value", "has none: tests/core/runtime/streams_test.cc"},
    {"_HostRecv shape", "made by a pass, with a shape that is known"},
    {"_HostRecv value", "made by a pass: tests/core/passes/transfer_test.cc"},
    {"_Recv shape", "made by a pass, with a shape that is known"},
    {"_Recv value", "made by a pass: tests/core/passes/transfer_test.cc"},
    {"_Send shape", "made by a pass, with a shape that is known"},
    {"_Send value", "made by a pass: tests/core/passes/transfer_test.cc"},
};

Checks missing_checks() {
  const Checks recorded = recorded_checks();
  Checks missing;
  for (const std::string& op : registered_ops()) {
    for (const OpCheck check : {OpCheck::value, OpCheck::shape, OpCheck::gradient}) {
      if (check == OpCheck::gradient && find_op(op).gradient_function() == nullptr) continue;
      if (recorded.count(check_of(op, check)) == 0) missing.insert(check_of(op, check));
    }
  }
  return missing;
}

TEST(OpCoverage, EveryOpIsChecked) {
  for (const std::string& check : missing_checks())
    EXPECT_EQ(kExempt.count(check), 1u)
        << "no test makes the check \"" << check
        << "\": use run_op (value), expect_shape (shape) or expect_gradients (gradient) in "
           "tests/core/ops/FAMILY_test.cc";
}

TEST(OpCoverage, NoOpIsExemptWithoutNeed) {
  const Checks missing = missing_checks();
  for (const auto& [check, reason] : kExempt)
    EXPECT_EQ(missing.count(check), 1u) << check << " is exempt (" << reason << "), but need not be";
}

}  // namespace
}  // namespace kolo
