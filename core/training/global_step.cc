#include <kolo/core/training/global_step.h>

#include <kolo/core/base/error.h>
#include <kolo/core/runtime/session_variables.h>

namespace kolo {

std::int64_t step_of(const Tensor& value) {
  return value.dtype() == DType::i32 ? value.value<std::int32_t>() : value.value<std::int64_t>();
}

std::int64_t read_global_step(Session& session, const Variable& step) {
  const Tensor value = detail::value_of(session, step);
  if (!value) throw FailedPreconditionError("Attempting to use uninitialized value {}", step.name());
  return step_of(value);
}

Variable require_global_step(const Graph& graph, const std::string& user) {
  const Variable step = find_global_step(graph);
  if (!step) throw FailedPreconditionError("Global step should be created to use {}.", user);
  return step;
}

}  // namespace kolo
