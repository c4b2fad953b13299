// How the ranks that share a training step agree to go on, to stop or to save after it, or to void it. The
// flags travel inside the step's own reductions, so that a step costs no message more.
// collectives implements it for each compiled schedule.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <kolo/core/graph/node.h>
#include <kolo/core/runtime/trace.h>

namespace kolo {

/// What the last finished step told this rank. The same on all ranks of the schedule.
struct StepVerdict {
  bool stop = false;         // some rank asked to stop: every rank stops after that step, which was applied
  bool end_of_data = false;  // some rank had no more data: no rank applied that step; all close normally
};

/// One for each schedule of a session. Any thread, but one step at a time.
class StepAgreement {
 public:
  virtual ~StepAgreement() = default;
  /// The job's numbers of the ranks that agree, in ascending order; none: all ranks.
  virtual std::vector<int> ranks() const { return {}; }
  /// Collective, once, before the first step. Throws FailedPreconditionError on every rank
  /// `Ranks disagree on the training step: …` if the schedules differ.
  virtual void compare() = 0;
  /// The number that errors name for the next step; without it steps count from 1.
  virtual void set_step(std::int64_t step) = 0;
  /// A step that contains the schedule's reductions starts on this rank. One at a time: end_step() comes
  /// before the next.
  virtual void begin_step() = 0;
  /// That step is over on this rank, whether it succeeded or failed.
  virtual void end_step() = 0;
  /// Adds what the communication thread did for the last step: when each bucket was really reduced.
  virtual void append_trace(StepTrace& trace) const = 0;
  /// Travels with the next step that this rank takes part in.
  virtual void request_stop() = 0;
  virtual StepVerdict last_step() const = 0;
  /// Travels with the next step, too, if that begins before take_save().
  virtual void request_save() = 0;
  /// Whether some rank requested a save after the step that has just been finished; the same on all ranks.
  /// True once for each such step. A request of this rank that has not travelled is forgotten. Until it is
  /// called after such a step, fail() tells nobody: the others are where they save, not in another step.
  virtual bool take_save() = 0;
  /// This rank has no data for the next step: it takes part with zeros and says so.
  /// Returns when that step is over.
  virtual void end_of_data() = 0;
  /// A kernel of the step under way has found the end of the data. The same for a step to which this rank has
  /// contributed nothing yet; from then on it is fail(text).
  virtual void end_of_data_in_step(const std::string& text) = 0;
  /// This rank failed, in or before a step: what it has not contributed yet goes out as zeros with the flag,
  /// and the others end in AbortedError `rank <r> failed in step <s>: <text>`. Returns when they know,
  /// or after a deadline.
  virtual void fail(const std::string& text) = 0;
};

/// Makes the agreement of a node of a session; collectives registers one for each of its grouped ops.
/// nullptr: this rank has nobody to agree with.
using AgreementFactory = std::shared_ptr<StepAgreement> (*)(const Node& node);
struct RegisterAgreement {
  RegisterAgreement(const std::string& op, AgreementFactory make);
};
/// nullptr if nodes of this op need none.
AgreementFactory agreement_factory(const std::string& op);

}  // namespace kolo
