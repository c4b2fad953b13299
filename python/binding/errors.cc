#include <exception>
#include <string>

#include <kolo/core/base/error.h>

#include "binding.h"

namespace py = pybind11;

namespace kolo::python {

void bind_errors(py::module_&) {
  py::register_exception_translator([](std::exception_ptr thrown) {
    try {
      if (thrown) std::rethrow_exception(thrown);
    } catch (const Error& error) {
      const std::string kind = std::string(name(error.code())) + "Error";
      const py::object type = py::module_::import("kolo.errors").attr(kind.c_str());
      PyErr_SetString(type.ptr(), error.what());
    }
  });
}

}  // namespace kolo::python
