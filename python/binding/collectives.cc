#include <kolo/collectives/engine/eager.h>
#include <kolo/collectives/engine/process_set.h>

#include <pybind11/stl.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "binding.h"
#include "pending.h"

namespace py = pybind11;

namespace kolo::python {
namespace {

using Members = std::vector<Tensor>;

EagerOptions options_of(const std::string& name, const ProcessSet& set) {
  // As in Horovod, an average is over all ranks of the set, those that have joined too.
  return {.name = name, .process_set = set, .join_average = JoinAverage::all};
}

Reduction reduction_of(std::string_view op, double prescale, double postscale) {
  return {reduce_op_from_name(op), prescale, postscale};
}

Pending start_allreduce(const Tensor& memory, std::string_view op, double prescale, double postscale,
                        const std::string& name, const ProcessSet& set) {
  return Pending(
      allreduce_in_place_async(memory, reduction_of(op, prescale, postscale), options_of(name, set)));
}

Pending start_grouped_allreduce(const Members& memory, std::string_view op, double prescale, double postscale,
                                const std::string& name, const ProcessSet& set) {
  return Pending(
      grouped_allreduce_in_place_async(memory, reduction_of(op, prescale, postscale), options_of(name, set)));
}

Pending start_reduce_scatter(const Tensor& memory, std::string_view op, double prescale, double postscale,
                             const std::string& name, const ProcessSet& set) {
  return Pending(reduce_scatter_async(memory, reduction_of(op, prescale, postscale), options_of(name, set)));
}

Pending start_grouped_reduce_scatter(const Members& memory, std::string_view op, double prescale,
                                     double postscale, const std::string& name, const ProcessSet& set) {
  return Pending(
      grouped_reduce_scatter_async(memory, reduction_of(op, prescale, postscale), options_of(name, set)));
}

Pending start_alltoall(const Tensor& memory, const std::vector<std::int64_t>& splits, const std::string& name,
                       const ProcessSet& set) {
  return Pending(alltoall_async(memory, splits, options_of(name, set)));
}

void bind_refusal(py::module_& module) {
  module.def(
      "refuse_call",
      [](std::string_view operation, std::string_view text, const std::string& name, const ProcessSet& set) {
        refuse_call(operation, text, options_of(name, set));
      },
      py::arg("operation"), py::arg("text"), py::arg("name"), py::arg("process_set"),
      "Tells the ranks that would wait for a call of this one that Python has refused it.");
}

void bind_reductions(py::module_& module) {
  const auto def = [&module](const char* name, auto function) {
    module.def(name, function, py::arg("memory"), py::arg("op"), py::arg("prescale"), py::arg("postscale"),
               py::arg("name"), py::arg("process_set"));
  };
  def("allreduce", &start_allreduce);  // in place
  def("grouped_allreduce", &start_grouped_allreduce);
  def("reduce_scatter", &start_reduce_scatter);
  def("grouped_reduce_scatter", &start_grouped_reduce_scatter);
}

void bind_moves(py::module_& module) {
  const auto rows = py::arg("memory");
  const auto root = py::arg("root");
  const auto name = py::arg("name");
  const auto set = py::arg("process_set");
  module.def(
      "allgather",
      [](const Tensor& memory, const std::string& name, const ProcessSet& set) {
        return Pending(allgather_async(memory, options_of(name, set)));
      },
      rows, name, set);
  module.def(
      "grouped_allgather",
      [](const Members& memory, const std::string& name, const ProcessSet& set) {
        return Pending(grouped_allgather_async(memory, options_of(name, set)));
      },
      rows, name, set);
  module.def(
      "broadcast",  // in place
      [](const Tensor& memory, int root, const std::string& name, const ProcessSet& set) {
        return Pending(broadcast_in_place_async(memory, root, options_of(name, set)));
      },
      rows, root, name, set);
  module.def(
      "grouped_broadcast",  // in place
      [](const Members& memory, int root, const std::string& name, const ProcessSet& set) {
        return Pending(grouped_broadcast_in_place_async(memory, root, options_of(name, set)));
      },
      rows, root, name, set);
  module.def(
      "gather",
      [](const Tensor& memory, int root, const std::string& name, const ProcessSet& set) {
        return Pending(gather_async(memory, root, options_of(name, set)));
      },
      rows, root, name, set);
  module.def(
      "scatter",
      [](const Tensor& memory, int root, const std::string& name, const ProcessSet& set) {
        return Pending(scatter_async(memory, root, options_of(name, set)));
      },
      rows, root, name, set);
  module.def("alltoall", &start_alltoall, rows, py::arg("splits"), name, set);
}

void bind_rest(py::module_& module) {
  const auto name = py::arg("name");
  const auto set = py::arg("process_set");
  module.def(
      "barrier",
      [](const std::string& name, const ProcessSet& set) {
        return Pending(barrier_async(options_of(name, set)));
      },
      name, set);
  module.def(
      "join", [](const ProcessSet& set) { return Pending(join_async(options_of("", set))); }, set);
  module.def(
      "broadcast_object",
      [](std::string_view bytes, int root, const std::string& name, const ProcessSet& set) {
        return Pending(broadcast_object_async(bytes, root, options_of(name, set)));
      },
      py::arg("bytes"), py::arg("root"), name, set);
  module.def(
      "allgather_object",
      [](std::string_view bytes, const std::string& name, const ProcessSet& set) {
        return Pending(allgather_object_async(bytes, options_of(name, set)));
      },
      py::arg("bytes"), name, set);
}

}  // namespace

void bind_process_sets(py::module_& module) {
  using Unlocked = py::call_guard<py::gil_scoped_release>;
  py::class_<ProcessSet>(module, "ProcessSet", "Some of the job's ranks. ProcessSet(): all of them.")
      .def(py::init<>())
      .def_static(
          "create", [](const std::vector<int>& ranks) { return ProcessSet::create(ranks); }, py::arg("ranks"),
          Unlocked(), "Collective over all ranks.")
      .def_static("split", &ProcessSet::split, py::arg("color"), py::arg("key"), Unlocked(),
                  "Collective over all ranks.")
      .def("remove", &ProcessSet::remove, Unlocked(), "Collective over all ranks.")
      .def_property_readonly("id", &ProcessSet::id)
      .def_property_readonly("ranks", &ProcessSet::ranks)
      .def_property_readonly("size", &ProcessSet::size)
      .def_property_readonly("rank", &ProcessSet::rank)
      .def("__eq__", [](const ProcessSet& a, const ProcessSet& b) { return a == b; })
      .def("__hash__", &ProcessSet::id);
}

void bind_collectives(py::module_& module) {
  bind_refusal(module);
  bind_reductions(module);
  bind_moves(module);
  bind_rest(module);
}

}  // namespace kolo::python
