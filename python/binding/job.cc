#include <kolo/collectives/job/init.h>

#include <pybind11/stl.h>

#include <optional>
#include <span>
#include <string>
#include <vector>

#include <kolo/collectives/job/mpi_interop.h>
#include <kolo/collectives/progress/timeline.h>

#include "binding.h"

namespace py = pybind11;

namespace kolo::python {
namespace {

void init_of(const std::optional<std::vector<int>>& ranks) {
  const py::gil_scoped_release release;
  if (ranks) init(std::span<const int>(*ranks));
  else init(nullptr, nullptr);
}

}  // namespace

void bind_job(py::module_& module) {
  using Unlocked = py::call_guard<py::gil_scoped_release>;
  module.def("init", &init_of, py::arg("ranks") = py::none());
  module.def("shutdown", &shutdown, Unlocked());
  module.def("rank", &rank);
  module.def("size", &size);
  module.def("local_rank", &local_rank);
  module.def("local_size", &local_size);
  module.def("cross_rank", &cross_rank);
  module.def("cross_size", &cross_size);
  module.def("node_count", &node_count);
  module.def("is_homogeneous", &is_homogeneous);
  module.def("hostname", &hostname);
  module.def("start_timeline", &start_timeline, py::arg("path"), Unlocked());
  module.def("stop_timeline", &stop_timeline, Unlocked());
}

}  // namespace kolo::python
