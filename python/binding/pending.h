// A collective under way, for Python.
#pragma once

#include <pybind11/pybind11.h>

#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <kolo/collectives/engine/handle.h>

namespace kolo::python {

class Pending {
 public:
  using AnyOf =
      std::variant<Handle<void>, Handle<Tensor>, Handle<std::vector<Tensor>>, Handle<AlltoallResult>,
                   Handle<int>, Handle<std::string>, Handle<std::vector<std::string>>>;

  template <typename Result>
  explicit Pending(Handle<Result> handle) : handle_(std::move(handle)) {}

  bool poll() const;
  const std::string& name() const;
  /// Waits; Ctrl-C ends the wait and leaves the operation under way. Throws the operation's error, which then
  /// names the operation and this rank. Returns None, Memory, a list of them, a number, bytes, a list of
  /// bytes or, of an alltoall, (Memory, splits).
  pybind11::object wait() const;
  /// The operation has ended within so long.
  bool wait_for(double seconds) const;

 private:
  const AnyHandle& any() const;
  bool wait_until_over(std::optional<double> seconds) const;

  AnyOf handle_;
};

}  // namespace kolo::python
