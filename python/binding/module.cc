#include "binding.h"

PYBIND11_MODULE(_kolo, module) {
  module.doc() = "kolo's collectives as they are in C++; use the package kolo.";
  module.attr("__version__") = KOLO_VERSION;
  kolo::python::bind_errors(module);
  kolo::python::bind_memory(module);
  kolo::python::bind_pending(module);
  kolo::python::bind_job(module);
  kolo::python::bind_process_sets(module);
  kolo::python::bind_collectives(module);
  kolo::python::bind_gradient_buckets(module);
  kolo::python::bind_checkpoints(module);
  kolo::python::bind_predictor(module);
  kolo::python::bind_weight_sums(module);
}
