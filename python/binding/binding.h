// What the Python module is made of: each function adds one part of kolo's public face to it. What is
// friendly to a reader of Python (defaults, names, dtypes of NumPy and PyTorch) stands in python/kolo.
#pragma once

#include <pybind11/pybind11.h>

namespace kolo::python {

/// kolo::Error becomes the class of kolo/errors.py that belongs to its code.
void bind_errors(pybind11::module_& module);
/// init, shutdown, ranks, the timeline.
void bind_job(pybind11::module_& module);
/// Memory: elements that Python or kolo owns.
void bind_memory(pybind11::module_& module);
/// Pending: a collective under way.
void bind_pending(pybind11::module_& module);
void bind_process_sets(pybind11::module_& module);
void bind_collectives(pybind11::module_& module);
void bind_gradient_buckets(pybind11::module_& module);
void bind_checkpoints(pybind11::module_& module);
/// Predictor: a trained network.
void bind_predictor(pybind11::module_& module);
/// Whether ranks hold the same weights.
void bind_weight_sums(pybind11::module_& module);

}  // namespace kolo::python
