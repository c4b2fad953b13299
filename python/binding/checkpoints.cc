#include <kolo/core/training/checkpoint_files.h>

#include <pybind11/stl.h>

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <kolo/core/base/error.h>
#include <kolo/core/training/initial_weights.h>
#include <kolo/core/training/safetensors.h>

#include "binding.h"

namespace py = pybind11;

namespace kolo::python {
namespace {

using Tensors = std::map<std::string, Tensor>;

// Strings, which have no memory that Python can see, by name: their shape and the bytes of each.
using Strings = std::map<std::string, std::pair<std::vector<std::int64_t>, std::vector<py::bytes>>>;

std::pair<Tensors, Strings> read_checkpoint(const std::string& prefix) {
  Tensors tensors, texts;
  {
    const py::gil_scoped_release release;
    CheckpointReader reader(prefix);
    for (const auto& [name, entry] : reader.index().tensors) {
      const Tensor tensor(entry.dtype, entry.shape);
      reader.read(name, tensor);
      (entry.dtype == DType::string ? texts : tensors).emplace(name, tensor);
    }
  }
  Strings strings;
  for (const auto& [name, tensor] : texts) {
    auto& [shape, elements] = strings[name];
    shape = tensor.shape().dims();
    for (const std::string& element : tensor.span<std::string>()) elements.emplace_back(element);
  }
  return {std::move(tensors), std::move(strings)};
}

Tensors renamed(const Tensors& variables, const WeightNames& names) {
  const py::gil_scoped_release release;
  return to_weight_names(variables, names);
}

Tensors named_back(const Tensors& tensors, const WeightNames& names) {
  const py::gil_scoped_release release;
  return from_weight_names(tensors, names);
}

Tensors read_safetensors(const std::string& path) {
  const py::gil_scoped_release release;
  SafetensorsReader reader(path);
  Tensors tensors;
  for (const auto& [name, entry] : reader.entries()) tensors.emplace(name, reader.read(name));
  return tensors;
}

void save_checkpoint(const std::string& prefix, Tensors tensors, const Strings& strings,
                     std::optional<std::int64_t> global_step) {
  for (const auto& [name, given] : strings) {
    const auto& [shape, elements] = given;
    const std::vector<std::string> texts(elements.begin(), elements.end());
    tensors.emplace(name, Tensor::of<std::string>(Shape(shape), std::span<const std::string>(texts)));
  }
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
  module.def("write_checkpoint", &save_checkpoint, py::arg("prefix"), py::arg("tensors"), py::arg("strings"),
             py::arg("global_step"));
  module.def("to_weight_names", &renamed, py::arg("variables"), py::arg("names"));
  module.def("from_weight_names", &named_back, py::arg("tensors"), py::arg("names"));
  module.def("newest_checkpoint", &newest_checkpoint, py::arg("directory"));
}

}  // namespace kolo::python
