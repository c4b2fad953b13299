// The update of a variable by an optimizer's rule, as one op. Users call optimizers; those who write one of
// their own may build on these.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <kolo/core/ops/variables.h>

namespace kolo {

/// A rule that has kernels of its own. `name`, such as "Adam", makes its ops: ApplyAdam takes a whole
/// gradient, SparseApplyAdam, where there is one, only the rows of slices. Inputs: the variable, its slots,
/// the scalars, [the rows' indices,] the gradient.
struct UpdateRuleOps {
  std::string name;
  std::vector<std::string> slots;
  std::vector<std::string> scalars;
  bool has_sparse;  // false: every step moves all rows, so slices are taken as a whole gradient
};

/// name                slots                 scalars
/// GradientDescent     –                     learning_rate
/// Momentum, Nesterov  momentum              learning_rate momentum
/// Adagrad             accumulator           learning_rate
/// RMSProp             rms momentum          learning_rate decay momentum epsilon
/// CenteredRMSProp     rms mg momentum       learning_rate decay momentum epsilon
/// Adam                m v                   beta1_power beta2_power learning_rate beta1 beta2 epsilon
/// AdamW               m v                   those of Adam, weight_decay
/// Adadelta            accum accum_update    learning_rate rho epsilon
/// Ftrl                accum linear          learning_rate l1 l2 shrinkage learning_rate_power
/// Lion                m                     learning_rate beta1 beta2 weight_decay
/// Formulas: the optimizers' headers. Sorted by name; the powers of the betas count this update, from 1.
const std::vector<UpdateRuleOps>& update_rules();

/// The rule whose Apply op is `op`, nullptr if it is none.
const UpdateRuleOps* find_update_rule(const std::string& op);

/// How many variables a node updates by the rule, one that has so many inputs.
int variables_updated(const UpdateRuleOps& rule, int inputs);

/// One op, named `op`, for `variables` updates by one rule: all variables each with its slots, the scalars,
/// all gradients. For nodes that passes make, which own it: it fits this many variables alone.
std::shared_ptr<OpSchema> schema_of_updates(const std::string& op, const UpdateRuleOps& rule, int variables);

/// What apply_update changes, and by which rule.
struct VariableUpdate {
  std::string rule;  // a name of update_rules()
  Variable variable;
  std::vector<Variable> slots;  // of the variable's shape and type, in the rule's order
  Outputs scalars;              // of the variable's type, in the rule's order
};

/// The variable's new value. A gradient that is slices (indexed_slices.h) changes the rows that it lists
/// alone, of slots too, after rows that are listed twice were summed; by Adam, AdamW and Lion it is taken as
/// a whole gradient full of zeros. Throws InvalidArgumentError where a shape or type does not fit; when it is
/// run, before anything is changed, `Index <i> at offset <o> in indices is out of range`.
Output apply_update(const Scope& s, const VariableUpdate& update, Output gradient);

}  // namespace kolo
