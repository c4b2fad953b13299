#include <kolo/collectives/schedule/gradient_buckets.h>

#include <pybind11/stl.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <kolo/core/tensor/tensor.h>

#include "binding.h"
#include "waiting.h"

namespace py = pybind11;

namespace kolo::python {
namespace {

// Name, number of elements, dtype in kolo's spelling.
using Gradient = std::tuple<std::string, std::int64_t, std::string>;

// Memory that was handed out keeps the buckets alive.
class Buckets {
 public:
  Buckets(const std::vector<Gradient>& gradients, const std::string& op) {
    std::vector<NamedBuffer> list;
    for (const auto& [name, count, dtype] : gradients) {
      dtypes_.push_back(dtype_from_name(dtype));
      counts_.push_back(count);
      list.push_back({.name = name, .count = count, .dtype = dtypes_.back()});
    }
    const py::gil_scoped_release release;
    buckets_ = std::make_shared<GradientBuckets>(
        std::move(list),
        GradientBucketsOptions{.op = reduce_op_from_name(op), .order = GradientOrder::listed});
  }

  int count() const { return buckets_->buckets(); }
  Tensor memory(int gradient) const {
    void* elements = buckets_->memory(gradient);
    const std::size_t bytes = static_cast<std::size_t>(counts_[gradient]) * size_of(dtypes_[gradient]);
    return Tensor(dtypes_[gradient], Shape{counts_[gradient]},
                  std::make_shared<Buffer>(elements, bytes, buckets_), 0);
  }
  void ready(int gradient) {
    const py::gil_scoped_release release;
    buckets_->ready(gradient);
  }
  void absent(int gradient) {
    const py::gil_scoped_release release;
    buckets_->absent(gradient);
  }
  bool wait_for(double seconds) {
    return wait_with_signals([this](auto deadline) { return buckets_->wait_until(deadline); }, seconds);
  }
  void wait() {
    wait_with_signals([this](auto deadline) { return buckets_->wait_until(deadline); });
    const py::gil_scoped_release release;
    buckets_->wait();
  }

 private:
  std::vector<DType> dtypes_;
  std::vector<std::int64_t> counts_;
  std::shared_ptr<GradientBuckets> buckets_;
};

}  // namespace

void bind_gradient_buckets(py::module_& module) {
  py::class_<Buckets>(module, "GradientBuckets",
                      "kolo::GradientBuckets over [(name, elements, dtype), …] in the order of reduction, "
                      "each gradient inside its bucket. Collective.")
      .def(py::init<const std::vector<Gradient>&, const std::string&>(), py::arg("gradients"), py::arg("op"))
      .def_property_readonly("count", &Buckets::count, "How many reductions a step makes.")
      .def("memory", &Buckets::memory, py::arg("gradient"))
      .def("ready", &Buckets::ready, py::arg("gradient"))
      .def("absent", &Buckets::absent, py::arg("gradient"))
      .def("wait", &Buckets::wait)
      .def("wait_for", &Buckets::wait_for, py::arg("seconds"), "Whether wait() would not wait any more.");
}

}  // namespace kolo::python
