#include "pending.h"

#include <pybind11/stl.h>

#include <kolo/core/base/error.h>
#include <kolo/core/base/process.h>

#include "binding.h"
#include "waiting.h"

namespace py = pybind11;

namespace kolo::python {
namespace {

py::object to_python(const Handle<void>& handle) {
  handle.wait();
  return py::none();
}

py::object to_python(const Handle<AlltoallResult>& handle) {
  AlltoallResult result = handle.wait();
  return py::make_tuple(std::move(result.tensor), result.splits);
}

py::object to_python(const Handle<std::string>& handle) { return py::bytes(handle.wait()); }

py::object to_python(const Handle<std::vector<std::string>>& handle) {
  py::list objects;
  for (const auto& text : handle.wait()) objects.append(py::bytes(text));
  return objects;
}

template <typename Result>
py::object to_python(const Handle<Result>& handle) {
  return py::cast(handle.wait());
}

}  // namespace

const AnyHandle& Pending::any() const {
  return std::visit([](const auto& handle) -> const AnyHandle& { return handle; }, handle_);
}

bool Pending::poll() const { return any().poll(); }

const std::string& Pending::name() const { return any().name(); }

bool Pending::wait_until_over(std::optional<double> seconds) const {
  if (poll()) return true;
  return wait_with_signals([this](auto deadline) { return any().wait_until(deadline); }, seconds);
}

bool Pending::wait_for(double seconds) const { return wait_until_over(seconds); }

py::object Pending::wait() const {
  wait_until_over({});
  try {
    return std::visit([](const auto& handle) { return to_python(handle); }, handle_);
  } catch (const Error& error) {
    const std::string text = error.what();
    if (text.find(name()) != std::string::npos) throw;
    throw_error(error.code(), name() + " on rank " + std::to_string(process().rank) + ": " + text);
  }
}

void bind_pending(py::module_& module) {
  py::class_<Pending>(module, "Pending", "A collective under way.")
      .def_property_readonly("name", &Pending::name)
      .def("poll", &Pending::poll, "Has it ended?")
      .def("wait", &Pending::wait, "Waits and gives the result, once; raises the operation's error.")
      .def("wait_for", &Pending::wait_for, py::arg("seconds"), "Waits at most so long: has it ended?");
}

}  // namespace kolo::python
