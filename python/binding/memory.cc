#include "memory.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <kolo/core/base/error.h>
#include <kolo/core/base/mutex.h>
#include <kolo/core/tensor/tensor.h>

#include "binding.h"

namespace py = pybind11;

namespace kolo::python {
namespace {

// References that were dropped without the GIL. Never destroyed: kolo's threads outlive the static objects.
class Dropped {
 public:
  void add(PyObject* object) KOLO_EXCLUDES(mutex_) {
    bool first = false;
    {
      MutexLock lock(mutex_);
      first = objects_.empty();
      objects_.push_back(object);
    }
    if (first) Py_AddPendingCall(release, this);
  }

 private:
  static int release(void* self) {
    auto& dropped = *static_cast<Dropped*>(self);
    std::vector<PyObject*> objects;
    {
      MutexLock lock(dropped.mutex_);
      objects.swap(dropped.objects_);
    }
    for (PyObject* object : objects) Py_DECREF(object);
    return 0;
  }

  Mutex mutex_;
  std::vector<PyObject*> objects_ KOLO_GUARDED_BY(mutex_);
};

void drop(PyObject* object) {
  static Dropped& dropped = *new Dropped;  // NOLINT(cppcoreguidelines-owning-memory)
  if (!Py_IsInitialized()) return;         // the interpreter has ended, and its objects with it
  if (PyGILState_Check()) Py_DECREF(object);
  else dropped.add(object);
}

// The struct module's letter; bf16, which it does not know, as 16 bits.
std::string format_of(DType dtype) {
  switch (dtype) {
    case DType::f32: return "f";
    case DType::f64: return "d";
    case DType::i32: return "i";
    case DType::i64: return "q";
    case DType::boolean: return "?";
    case DType::u8: return "B";
    case DType::i8: return "b";
    case DType::f16: return "e";
    case DType::bf16: return "H";
    case DType::string: break;
  }
  throw InternalError("elements of type {} have no memory that Python can see", numpy_name(dtype));
}

Shape shape_of(const py::tuple& dims) {
  std::vector<std::int64_t> shape;
  shape.reserve(dims.size());
  for (const auto& dim : dims) shape.push_back(dim.cast<std::int64_t>());
  return Shape(std::move(shape));
}

Tensor borrowed(std::uintptr_t address, std::string_view dtype, const py::tuple& dims,
                const py::object& owner) {
  const DType type = dtype_from_name(dtype);
  Shape shape = shape_of(dims);
  const std::size_t bytes = static_cast<std::size_t>(shape.elements()) * size_of(type);
  auto buffer = std::make_shared<Buffer>(reinterpret_cast<void*>(address), bytes, kept_alive(owner));
  return Tensor(type, shape, std::move(buffer), 0);
}

py::tuple dims_of(const Tensor& tensor) {
  const Shape& shape = tensor.shape();
  py::tuple dims(shape.rank());
  for (int d = 0; d < shape.rank(); ++d) dims[d] = shape.dim(d);
  return dims;
}

py::buffer_info buffer_of(const Tensor& tensor) {
  const auto itemsize = static_cast<py::ssize_t>(size_of(tensor.dtype()));
  std::vector<py::ssize_t> dims, strides(tensor.shape().rank());
  for (int d = 0; d < tensor.shape().rank(); ++d) dims.push_back(tensor.shape().dim(d));
  py::ssize_t stride = itemsize;
  for (std::size_t d = dims.size(); d-- > 0; stride *= dims[d]) strides[d] = stride;
  return {tensor.raw(), itemsize, format_of(tensor.dtype()), static_cast<py::ssize_t>(dims.size()),
          dims,         strides};
}

}  // namespace

std::shared_ptr<void> kept_alive(const py::object& object) {
  return {object.inc_ref().ptr(), [](void* kept) { drop(static_cast<PyObject*>(kept)); }};
}

void bind_memory(py::module_& module) {
  py::class_<Tensor>(module, "Memory", py::buffer_protocol(),
                     "Row-major elements. NumPy sees them in place: numpy.asarray(memory).")
      .def(py::init(&borrowed), py::arg("address"), py::arg("dtype"), py::arg("shape"), py::arg("owner"),
           "Elements of `owner`, which is kept alive. dtype: kolo's spelling, as \"f32\".")
      .def_property_readonly(
          "address", [](const Tensor& tensor) { return reinterpret_cast<std::uintptr_t>(tensor.raw()); })
      .def_property_readonly("dtype", [](const Tensor& tensor) { return name(tensor.dtype()); })
      .def_property_readonly("shape", &dims_of)
      .def_buffer(&buffer_of);
}

}  // namespace kolo::python
