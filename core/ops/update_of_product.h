// Updates whose gradient is a product that no memory holds. Only a pass makes nodes of them (pipeline.h,
// apply_products).
#pragma once

#include <string>

#include <kolo/core/ops/training.h>

namespace kolo {

/// The op of the rule: the inputs of Apply<rule> without the gradient, then x [rows, inputs] and dy [rows,
/// outputs]. The variable is [inputs, outputs], its gradient xᵀ · dy.
inline std::string update_of_product_op(const UpdateRuleOps& rule) {
  return "Apply" + rule.name + "OfProduct";
}

inline bool is_update_of_product(const std::string& op) { return op.ends_with("OfProduct"); }

}  // namespace kolo
