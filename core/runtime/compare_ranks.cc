#include <kolo/core/runtime/compare_ranks.h>

#include <string>

#include <kolo/core/base/error.h>

namespace kolo::detail {

void share_failure(Group& group, const std::function<void()>& work) {
  if (group.size() == 1) return work();
  Code code = Code::unknown;
  std::string text;
  try {
    work();
  } catch (const std::exception& error) {
    code = code_of(error);
    text = *error.what() != '\0' ? error.what() : name(code);
  }
  throw_if_any_failed(group, code, text);
}

}  // namespace kolo::detail
