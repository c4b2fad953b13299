// Ends a training whose loss is no number any more.
#pragma once

#include <string>

#include <kolo/core/training/hook.h>

namespace kolo {

struct NanTensorOptions {
  bool fail_on_nan_loss = true;  // false: asks for the stop instead, after the step
};

/// Looks at the loss of every run of the session, which therefore must be fed what the loss needs. A loss
/// that is NaN or infinite on any rank fails the step before it updates a variable of that rank:
/// FailedPreconditionError `NaN loss during training.` with the step and the first op whose output is not
/// finite, found by computing the loss once more; the other ranks end in AbortedError `rank <r> failed …`.
/// What is on the disk stays the last good state. Cost per step: the check of the loss, one number as a rule.
///
/// With fail_on_nan_loss = false the step is made and the training asked to stop, without an error. With
/// DynamicLossScale, which skips steps that are not finite, this hook would end what that goes on from.
class NanTensorHook : public SessionRunHook {
 public:
  /// loss: f32|f64 (with fail_on_nan_loss = false any floating type), of any shape.
  explicit NanTensorHook(Output loss, NanTensorOptions options = {}) : loss_(loss), options_(options) {}

  /// Throws InvalidArgumentError for a loss of another type or another graph.
  void begin(Graph& graph) override;
  SessionRunArgs before_run(RunContext& context) override;
  void after_run(RunContext& context, const RunValues& values) override;
  void after_failure(RunContext& context, const SessionRunArgs& made, const Error& error) override;

 private:
  Output loss_;
  NanTensorOptions options_;
  Operation guard_;
};

}  // namespace kolo
