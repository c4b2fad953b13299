#include <kolo/core/cluster/call.h>

#include <fmt/format.h>

namespace kolo::detail {

bool is_consequence(const std::exception_ptr& error) {
  if (error == nullptr) return false;
  try {
    std::rethrow_exception(error);
  } catch (const ConsequenceError&) {
    return true;
  } catch (...) {
    return false;
  }
}

std::string task_name(const std::string& job, int index) {
  return fmt::format("/job:{}/replica:0/task:{}", job, index);
}

}  // namespace kolo::detail
