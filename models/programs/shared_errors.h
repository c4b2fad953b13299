// Errors that every rank has, so that rank 0 alone tells them.
#pragma once

#include <stdexcept>
#include <string>
#include <type_traits>

#include <kolo/core/base/error.h>
#include <kolo/core/runtime/compare_ranks.h>
#include <kolo/core/runtime/group.h>

namespace kolo::models {

/// An error that every rank has.
class SharedError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Does `work` on every rank; if it fails on any, every rank throws the first one's error.
template <typename Work>
auto on_all_ranks(const Work& work) {
  std::invoke_result_t<Work> result{};
  try {
    kolo::detail::share_failure(world_group(), [&] { result = work(); });
  } catch (const std::exception& shared) {  // with one rank it is the work's own
    throw SharedError(shared.what());
  }
  return result;
}

/// For what fails alike on every rank by its nature: the session compares and shares what it finds.
template <typename Work>
void shared_errors(const Work& work) {
  try {
    work();
  } catch (const Error& error) {
    throw SharedError(error.what());
  }
}

}  // namespace kolo::models
