#include <kolo/core/device/device_values.h>

#include <future>

namespace kolo {
namespace {

template <typename Copy>
void wait_for(const Copy& copy) {
  std::promise<void> copied;
  copy([&](std::exception_ptr error) {
    if (error) copied.set_exception(error);
    else copied.set_value();
  });
  copied.get_future().get();
}

}  // namespace

Tensor copy_to_device(const Tensor& host_tensor, Device& device) {
  if (device.has_host_memory()) return host_tensor;
  Tensor copy(host_tensor.dtype(), host_tensor.shape(), device.allocator());
  write_to_device(host_tensor, copy, device);
  return copy;
}

void write_to_device(const Tensor& source, const Tensor& target, Device& device) {
  if (source.raw() == target.raw()) return;
  CpuDevice host(local_device_name("CPU", 0));
  wait_for([&](const CopyDone& done) { device.copy_from(host, source, target, done); });
}

Tensor read_from_device(const Tensor& tensor, Device& device) {
  if (device.has_host_memory()) return tensor;
  Tensor copy(tensor.dtype(), tensor.shape());
  wait_for([&](const CopyDone& done) { device.copy_to_host(tensor, copy, done); });
  return copy;
}

}  // namespace kolo
