// The agreements of one step among the ranks, from its begin to its end.
#pragma once

#include <cstddef>
#include <exception>
#include <memory>
#include <mutex>
#include <vector>

#include <kolo/core/base/mutex.h>
#include <kolo/core/runtime/step_agreement.h>

namespace kolo::detail {

using AgreementList = std::vector<std::shared_ptr<StepAgreement>>;

/// Tells every agreement that this rank's step has failed, or has found the end of the data; goes on, and
/// logs, where one of them throws. May block.
void tell_others(const AgreementList& agreements, const std::exception_ptr& error);

/// A step's agreements, begun one after the other and ended together in whatever way the step ends. One
/// thread.
class StepAgreements {
 public:
  /// Without agreements it does nothing. With some, `one_step` is held until the end: a session has one such
  /// step at a time. Where one cannot begin, the others are told, those that have begun are ended, and its
  /// error is thrown.
  StepAgreements(Mutex& one_step, const AgreementList& agreements);
  ~StepAgreements() { end(); }
  StepAgreements(const StepAgreements&) = delete;
  StepAgreements& operator=(const StepAgreements&) = delete;

  /// Does what comes before the step's kernels run: if it throws, the others are told.
  template <typename Prepare>
  void prepare(const Prepare& prepare) const {
    try {
      prepare();
    } catch (...) {
      tell_others(agreements_, std::current_exception());
      throw;
    }
  }

 private:
  void end();

  const AgreementList& agreements_;
  std::size_t begun_ = 0;
  std::unique_lock<Mutex> lock_;
};

}  // namespace kolo::detail
