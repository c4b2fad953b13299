// Which of kolo's own kernels each measured processor takes, in the order of OwnKernel. Made by
// scripts/make_kernel_table from bench/results/kernels. A figure is the library's time over the own one's.
#pragma once

#include <array>
#include <string_view>

namespace kolo::detail {

constexpr int kKernelsMeasured = 7;

struct OwnKernelsOfProcessor {
  std::string_view vendor;
  int family;
  int model;  // kAnyModel: of all models of the family
  std::array<bool, kKernelsMeasured> takes_own;
};
constexpr int kAnyModel = -1;

constexpr std::array<OwnKernelsOfProcessor, 3> kMeasuredProcessors{{
    // amd_family_25.json: packed_product 1.01, streamed_product 1.01, summed_product 1.01, thin_product
    // 1.43, winograd_for_bf16 1.01.
    {"AuthenticAMD", 25, kAnyModel, {true, true, true, true, true, true, true}},
    // amd_family_26.json: packed_product 0.98, streamed_product 1.04, summed_product 1.00, thin_product
    // 1.02, winograd 1.43, pointwise 1.05, winograd_for_bf16 1.39.
    {"AuthenticAMD", 26, kAnyModel, {false, true, false, true, true, true, true}},
    // intel_family_6_model_167.json: packed_product 1.09, streamed_product 1.36, summed_product 1.12,
    // thin_product 1.76, winograd 1.47, pointwise 1.15, winograd_for_bf16 0.47.
    {"GenuineIntel", 6, 167, {true, true, true, true, true, true, false}},
}};
constexpr std::array<bool, kKernelsMeasured> kOnOthers{false, false, false, false, true, false, false};

}  // namespace kolo::detail
