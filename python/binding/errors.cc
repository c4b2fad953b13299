#include <exception>
#include <string>
#include <string_view>

#include <kolo/core/base/error.h>

#include "binding.h"

namespace py = pybind11;

namespace kolo::python {
namespace {

// The library's texts name its functions as C++ does: "call kolo::init() first".
std::string in_python(std::string text) {
  constexpr std::string_view kScope = "kolo::";
  for (auto at = text.find(kScope); at != std::string::npos; at = text.find(kScope, at))
    text.replace(at, kScope.size(), "kolo.");
  return text;
}

}  // namespace

void bind_errors(py::module_&) {
  py::register_exception_translator([](std::exception_ptr thrown) {
    try {
      if (thrown) std::rethrow_exception(thrown);
    } catch (const Error& error) {
      const std::string kind = std::string(name(error.code())) + "Error";
      const py::object type = py::module_::import("kolo.errors").attr(kind.c_str());
      PyErr_SetString(type.ptr(), in_python(error.what()).c_str());
    }
  });
}

}  // namespace kolo::python
