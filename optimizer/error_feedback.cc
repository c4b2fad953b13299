#include <kolo/optimizer/error_feedback.h>

#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/control_flow.h>
#include <kolo/core/ops/reductions.h>
#include <kolo/core/training/rank_state.h>

namespace kolo::detail {

void check_linear(const GradientReducer& reducer, const std::string& compression) {
  if (reducer.op() != ReduceOp::average && reducer.op() != ReduceOp::sum)
    throw InvalidArgumentError("{} compression: op is {}; it serves average and sum", compression,
                               name(reducer.op()));
}

// Outside the scopes in which the step is built, as an optimizer's slots are.
Variable compression_state(const Scope& s, const Variable& variable, const std::string& suffix, Shape shape,
                           bool own_of_rank, const std::function<Output(const Scope&)>& initial) {
  const Scope beside = Scope(s.graph()).colocate_with(variable.ref());
  const std::string name = variable.name() + "/" + suffix;
  const Scope first = beside.named(name + "/initial_value");
  const Variable state(beside.named(name),
                       initial ? initial(first) : zeros(first, variable.dtype(), std::move(shape)),
                       {.trainable = false});
  using Kind = RankState::Kind;
  set_rank_state(s.graph(), state, {.kind = own_of_rank ? Kind::own : Kind::shared, .optional = true});
  return state;
}

Output with_state_update(const Scope& s, Output reduced,
                         const std::function<Operation(const Scope&)>& update) {
  const Operation updated =
      cond(s, all_finite(s, {reduced}), update, [](const Scope& inside) { return no_op(inside); });
  return with_dependencies(s, {updated}, reduced);
}

}  // namespace kolo::detail
