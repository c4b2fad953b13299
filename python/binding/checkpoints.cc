#include <kolo/core/training/checkpoint_files.h>

#include <pybind11/stl.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/core/training/safetensors.h>

#include "binding.h"

namespace py = pybind11;

namespace kolo::python {
namespace {

using Tensors = std::map<std::string, Tensor>;

std::pair<Tensors, std::optional<std::int64_t>> read_checkpoint(const std::string& prefix) {
  const py::gil_scoped_release release;
  CheckpointReader reader(prefix);
  Tensors tensors;
  for (const auto& [name, entry] : reader.index().tensors) {
    const Tensor tensor(entry.dtype, entry.shape);
    reader.read(name, tensor);
    tensors.emplace(name, tensor);
  }
  return {std::move(tensors), reader.index().global_step};
}

Tensors read_safetensors(const std::string& path) {
  const py::gil_scoped_release release;
  SafetensorsReader reader(path);
  Tensors tensors;
  for (const auto& [name, entry] : reader.entries()) tensors.emplace(name, reader.read(name));
  return tensors;
}

void save_checkpoint(const std::string& prefix, const Tensors& tensors,
                     std::optional<std::int64_t> global_step) {
  const py::gil_scoped_release release;
  write_checkpoint(prefix, tensors, {.global_step = global_step});
}

std::optional<std::string> newest_checkpoint(const std::string& directory) {
  const py::gil_scoped_release release;
  return newest_intact_checkpoint(directory);
}

}  // namespace

void bind_checkpoints(py::module_& module) {
  module.def("read_checkpoint", &read_checkpoint, py::arg("prefix"));
  module.def("read_safetensors", &read_safetensors, py::arg("path"));
  module.def("write_checkpoint", &save_checkpoint, py::arg("prefix"), py::arg("tensors"),
             py::arg("global_step"));
  module.def("newest_checkpoint", &newest_checkpoint, py::arg("directory"));
}

}  // namespace kolo::python
