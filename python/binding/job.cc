#include <kolo/collectives/job/init.h>

#include <pybind11/stl.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <kolo/collectives/job/mpi_interop.h>
#include <kolo/collectives/progress/timeline.h>
#include <kolo/core/base/elastic_restart.h>
#include <kolo/core/base/error.h>
#include <kolo/core/base/exit_code.h>
#include <kolo/core/base/stop_signal.h>

#include "binding.h"

namespace py = pybind11;

namespace kolo::python {
namespace {

void init_of(const std::optional<std::vector<int>>& ranks) {
  const py::gil_scoped_release release;
  if (ranks) init(std::span<const int>(*ranks));
  else init(nullptr, nullptr);
}

// mpi4py has its communicators in the memory of its objects. It may be of another MPI than kolo, and then
// what lies there is no communicator.
void init_with(std::uintptr_t address, std::size_t bytes, const std::string& library) {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> own = {};
  int length = 0;
  MPI_Get_library_version(own.data(), &length);
  if (bytes != sizeof(MPI_Comm) || std::strcmp(library.c_str(), own.data()) != 0)
    throw FailedPreconditionError("init: mpi4py is for {}, and kolo for {}; both must be built with one MPI",
                                  library, own.data());
  const py::gil_scoped_release release;
  init(*reinterpret_cast<const MPI_Comm*>(address));
}

}  // namespace

void bind_job(py::module_& module) {
  using Unlocked = py::call_guard<py::gil_scoped_release>;
  module.def("init", &init_of, py::arg("ranks") = py::none());
  module.def("init_with", &init_with, py::arg("address"), py::arg("bytes"), py::arg("library"));
  // What init() left in C's environment, which os.environ does not see.
  module.def("rank_mark", [] { return std::getenv("KOLO_RANK_PROCESS"); });
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
  module.def("install_stop_signals", &install_stop_signals);
  module.def("stop_signal_received", &stop_signal_received);
  module.def(
      "note_stop", [](std::int64_t step) { detail::note_end_of_training(true, step); }, py::arg("step"));
  module.def("exit_code", &exit_code);
  module.def("elastic_restart", [] {
    const ElasticRestart restart = elastic_restart();
    return py::make_tuple(restart.number, restart.lost_hosts, restart.ranks_before, restart.last_step,
                          restart.seconds);
  });
}

}  // namespace kolo::python
