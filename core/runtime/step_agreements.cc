#include <kolo/core/runtime/step_agreements.h>

#include <string>

#include <kolo/core/base/error.h>
#include <kolo/core/base/log.h>
#include <kolo/core/base/message_of.h>

namespace kolo::detail {
namespace {

bool is_end_of_data(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const OutOfRangeError&) {
    return true;
  } catch (...) {
    return false;
  }
}

}  // namespace

void tell_others(const AgreementList& agreements, const std::exception_ptr& error) {
  const std::string text = message_of(error);
  for (const auto& agreement : agreements) {
    try {
      is_end_of_data(error) ? agreement->end_of_data_in_step(text) : agreement->fail(text);
    } catch (const std::exception& another) {
      log_error("while the other ranks were told that a step failed: {}", another.what());
    }
  }
}

StepAgreements::StepAgreements(Mutex& one_step, const AgreementList& agreements) : agreements_(agreements) {
  if (agreements_.empty()) return;
  lock_ = std::unique_lock(one_step);
  try {
    for (; begun_ < agreements_.size(); ++begun_) agreements_[begun_]->begin_step();
  } catch (...) {
    tell_others(agreements_, std::current_exception());
    end();
    throw;
  }
}

void StepAgreements::end() {
  for (; begun_ > 0; --begun_) agreements_[begun_ - 1]->end_step();
}

}  // namespace kolo::detail
