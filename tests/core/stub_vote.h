// A vote among ranks that are not there: does nothing, so that a test overrides what it looks at.
#pragma once

#include <kolo/core/runtime/step_vote.h>

namespace kolo::testing {

class StubVote : public StepVote {
 public:
  void compare() override {}
  void set_step(std::int64_t) override {}
  void begin() override {}
  void end() override {}
  void cast(StepFlag) override {}
  void leave(StepFlag, const std::string&) override {}
  StepFlags take_outcome() override { return {}; }
  void append_trace(StepTrace&) const override {}
};

}  // namespace kolo::testing
