#include <kolo/core/cluster/call.h>

#include <fmt/format.h>

#include <algorithm>

namespace kolo::detail {

Deadline Deadline::shifted(std::chrono::milliseconds by) const {
  return time_ ? Deadline(*time_ + by, stop_) : *this;
}

Deadline Deadline::at_most(std::chrono::milliseconds patience) const {
  const Time limit = std::chrono::steady_clock::now() + patience;
  return {time_ ? std::min(*time_, limit) : limit, stop_};
}

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
