// The same network for inference, in the same graph and with the same variables: what only training does
// (statistics of the batch, dropout) is replaced, all that follows from it is built again.
#pragma once

#include <functional>
#include <string>

#include <kolo/core/base/source_line.h>
#include <kolo/core/graph/scope.h>

namespace kolo {

/// Gives what stands for the outputs of `op` in inference; `inputs`: its inputs, replaced already. It is
/// made of these and of new nodes alone: in a loop's body nothing else is at hand.
using InferenceForm = std::function<Outputs(const Scope& s, const Node& op, const Outputs& inputs)>;

/// A namespace-scope constant of the file of an op that acts in training only. A second form for one op is an
/// InternalError at start-up.
struct RegisterInferenceForm {
  RegisterInferenceForm(const std::string& op, InferenceForm form, SourceLine place = SourceLine::here());
};

/// y as inference computes it: y itself where nothing on its way has an inference form. New nodes are named
/// "inference/" and after the ones that they replace, go to the devices asked for those and wait for what
/// those wait for. A loop whose body acts in training only is built again with a body for inference. Throws
/// InvalidArgumentError if a variable's update follows from a replaced value or is part of a loop that would
/// be built again.
Output inference_form(const Scope& s, Output y);

}  // namespace kolo
