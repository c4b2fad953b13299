// A hook that calls what a test gives it.
#pragma once

#include <functional>
#include <utility>

#include <kolo/core/training/hooks.h>

namespace kolo {

struct CallbackHook : SessionRunHook {
  using Callback = std::function<void(RunContext&, int)>;  // with the number of the run, from 0
  explicit CallbackHook(Callback called_before = {}) : before(std::move(called_before)) {}
  SessionRunArgs before_run(RunContext& context) override {
    if (before) before(context, run);
    return {};
  }
  void after_run(RunContext& context, const RunValues&) override {
    if (after) after(context, run);
    ++run;
  }
  void end(Session&) override { ended = true; }

  Callback before, after;
  int run = 0;
  bool ended = false;
};

}  // namespace kolo
