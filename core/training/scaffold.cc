#include <kolo/core/training/scaffold.h>

#include <fmt/ranges.h>

#include <kolo/core/base/error.h>

namespace kolo::detail {
namespace {

std::string name_or(const Operation& op, const char* otherwise) { return op ? op.name() : otherwise; }

}  // namespace

std::vector<std::string> not_ready(Session& session, const Scaffold& scaffold) {
  return scaffold.ready ? scaffold.ready(session) : report_uninitialized_variables(session);
}

void require_ready_for_local_init(Session& session, const Scaffold& scaffold) {
  if (!scaffold.ready_for_local_init) return;
  const std::vector<std::string> missing = scaffold.ready_for_local_init(session);
  if (missing.empty()) return;
  throw FailedPreconditionError(
      "Init operations did not make model ready for local_init.  Init op: {}, init fn: {}, error: Variables "
      "not initialized: {}",
      name_or(scaffold.init_op, "the initialisers"), scaffold.init_fn ? "given" : "None",
      fmt::join(missing, ", "));
}

void require_ready(Session& session, const Scaffold& scaffold) {
  const std::vector<std::string> missing = not_ready(session, scaffold);
  if (missing.empty()) return;
  throw FailedPreconditionError(
      "Init operations did not make model ready.  Init op: {}, init fn: {}, local_init_op: {}, error: "
      "Variables not initialized: {}",
      name_or(scaffold.init_op, "the initialisers"), scaffold.init_fn ? "given" : "None",
      name_or(scaffold.local_init_op, "the initialisers"), fmt::join(missing, ", "));
}

}  // namespace kolo::detail
