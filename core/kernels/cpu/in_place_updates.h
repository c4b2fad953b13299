// The one door from collectives into the CPU's kernels. Ranks of one host may update variables with gradients
// that they read in each other's memory, and make sums of gradients out of each other's factors:
//   update_kernel.h       a kernel that applies an optimizer's rule: its inputs, its scalars, its ranges
//   update_rules.h        UpdatedRange, the gradients of up to kMaxGradients ranks, and apply_rule
//   product_sum.h         ProductSum: the sum of the ranks' products of factors, or a part of its rows
//   update_of_product.h   UpdateOfProduct: an update with that sum, which no memory holds
//   thin_gemm.h           ThinGemm: the product of so few rows that each rank makes all of them
//   gemm_parts.h          Part: the rows that each rank makes
#pragma once

#include <kolo/core/kernels/cpu/gemm/gemm_parts.h>
#include <kolo/core/kernels/cpu/gemm/product_sum.h>
#include <kolo/core/kernels/cpu/gemm/thin_gemm.h>
#include <kolo/core/kernels/cpu/gemm/update_of_product.h>
#include <kolo/core/kernels/cpu/loops/update_rules.h>
#include <kolo/core/kernels/cpu/update_kernel.h>
