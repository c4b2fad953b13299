// An agreement among ranks that are not there: does nothing, so that a test overrides what it looks at.
#pragma once

#include <kolo/core/runtime/step_agreement.h>

namespace kolo::testing {

class StubAgreement : public StepAgreement {
 public:
  void compare() override {}
  void set_step(std::int64_t) override {}
  void begin_step() override {}
  void end_step() override {}
  void append_trace(StepTrace&) const override {}
  void request_stop() override {}
  StepVerdict last_step() const override { return {}; }
  void request_save() override {}
  bool take_save() override { return false; }
  void end_of_data() override {}
  void end_of_data_in_step(const std::string&) override {}
  void fail(const std::string&) override {}
};

}  // namespace kolo::testing
