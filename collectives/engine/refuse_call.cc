#include <kolo/collectives/engine/eager.h>

#include <string>

#include <kolo/collectives/engine/call.h>
#include <kolo/collectives/engine/eager_internal.h>

namespace kolo {
namespace {

detail::OpKind kind_of(std::string_view operation) {
  for (int i = 0; i < detail::kOpKinds; ++i)
    if (const auto kind = static_cast<detail::OpKind>(i); operation == detail::name(kind)) return kind;
  throw InvalidArgumentError("refuse_call: there is no operation \"{}\"; \"allreduce\" would be right",
                             operation);
}

}  // namespace

void refuse_call(std::string_view operation, std::string_view text, const EagerOptions& options) {
  const detail::OpKind kind = kind_of(operation);
  const auto set = detail::current_engine()->set(options.process_set.id());
  set->refuse(options.name.empty() ? set->next_name(kind) : options.name, std::string(text));
}

}  // namespace kolo
