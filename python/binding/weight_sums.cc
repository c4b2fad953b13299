#include <kolo/core/runtime/weight_sums.h>

#include <pybind11/stl.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "binding.h"

namespace py = pybind11;

namespace kolo::python {
namespace {

using detail::WeightSums;

// Name, address, bytes.
using Weight = std::tuple<std::string, std::uintptr_t, std::size_t>;

WeightSums sums_of(const std::vector<Weight>& weights, std::uint64_t seed) {
  const py::gil_scoped_release release;
  WeightSums sums;
  for (const auto& [name, address, bytes] : weights)
    sums.emplace_back(name, detail::sum_of_bits(reinterpret_cast<const void*>(address), bytes, seed));
  return sums;
}

}  // namespace

void bind_weight_sums(py::module_& module) {
  module.def("check_drift_steps", &detail::check_drift_steps, "KOLO_CHECK_DRIFT, else 100.");
  module.def("weight_sums", &sums_of, py::arg("weights"), py::arg("seed"),
             "[(name, a number of the bits)] of [(name, address, bytes)].");
  module.def("combined_sum", &detail::combined, py::arg("sums"), "One number of 16 bits.");
  module.def("text_of_sums", &detail::text_of, py::arg("sums"));
  module.def(
      "weights_that_differ",
      [](const std::vector<std::string>& texts, const std::vector<int>& ranks, std::int64_t first,
         std::int64_t last) { return detail::weights_that_differ(texts, ranks, first, last); },
      py::arg("texts"), py::arg("ranks"), py::arg("first"), py::arg("last"),
      "The text of the error, from the text_of_sums() of all ranks; None where they are the same.");
}

}  // namespace kolo::python
