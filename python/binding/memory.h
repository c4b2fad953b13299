// Elements that a collective reads and writes, without a copy, whoever owns them.
#pragma once

#include <pybind11/pybind11.h>

#include <memory>

namespace kolo::python {

/// Keeps `object` alive. Any thread may drop the last copy: what happens without the GIL is left for a thread
/// that has it, so that kolo's own threads never wait for Python. Called with the GIL held.
std::shared_ptr<void> kept_alive(const pybind11::object& object);

}  // namespace kolo::python
