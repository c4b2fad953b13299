#include <kolo/models/predictor.h>

#include <pybind11/stl.h>

#include <string>

#include "binding.h"

namespace py = pybind11;

namespace kolo::python {
namespace {

using models::Predictor;

Predictor load(const std::string& folder) {
  const py::gil_scoped_release release;
  return Predictor::load(folder);
}

Tensor predict(const Predictor& predictor, const Tensor& samples, bool logits) {
  const py::gil_scoped_release release;
  return logits ? predictor.logits(samples) : predictor(samples);
}

}  // namespace

void bind_predictor(py::module_& module) {
  py::class_<Predictor>(module, "Predictor")
      .def(py::init(&load), py::arg("folder"))
      .def("predict", &predict, py::arg("samples"), py::arg("logits"))
      .def_property_readonly("sample_shape",
                             [](const Predictor& predictor) { return predictor.sample().dims(); })
      .def_property_readonly("dtype", [](const Predictor& predictor) { return name(predictor.dtype()); })
      .def_property_readonly("class_names", &Predictor::class_names)
      .def_property_readonly("global_step", &Predictor::global_step);
}

}  // namespace kolo::python
