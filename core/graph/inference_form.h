// The same network for inference, in the same graph and with the same variables: what only training does
// (statistics of the batch, dropout) is replaced, all that follows from it is built again.
#pragma once

#include <functional>
#include <string>

#include <kolo/core/graph/scope.h>

namespace kolo {

/// Gives what stands for the outputs of `op` in inference; `inputs`: its inputs, replaced already.
using InferenceForm = std::function<Outputs(const Scope& s, const Node& op, const Outputs& inputs)>;

/// A namespace-scope constant of the file of an op that acts in training only. A second form for one op is an
/// InternalError at start-up.
struct RegisterInferenceForm {
  RegisterInferenceForm(const std::string& op, InferenceForm form);
};

/// y as inference computes it: y itself where nothing on its way has an inference form. New nodes are named
/// "inference/" and after the ones that they replace, and go to the devices asked for those. Throws
/// InvalidArgumentError if a variable's update follows from a replaced value.
Output inference_form(const Scope& s, Output y);

}  // namespace kolo
