#include <kolo/core/device/device_values.h>

#include <fmt/format.h>

#include <exception>
#include <future>
#include <string>

#include <kolo/core/device/order_log.h>

namespace kolo {
namespace {

void copy_and_wait(const Tensor& source, Device& from, const Tensor& target, Device& to) {
  Stream& stream = *copy_stream(from, to);
  if (OrderLog* const log = OrderLog::active())
    log->use(stream.name(), "copy", {{source.raw(), source.bytes()}}, {{target.raw(), target.bytes()}});
  std::exception_ptr error;
  stream.enqueue([&] {
    try {
      to.copy_from(from, source, target);
    } catch (...) {
      error = std::current_exception();
    }
  });
  if (stream.native() != nullptr && error) std::rethrow_exception(error);
  wait_until_done(stream);
  if (error) std::rethrow_exception(error);
}

}  // namespace

void wait_until_done(Stream& stream) {
  std::promise<void> done;
  const std::string token = fmt::format("done:{}", fmt::ptr(&done));
  stream.when_done([&](std::exception_ptr error) {
    if (OrderLog* const log = OrderLog::active()) log->record(OrderLog::this_thread(), token);
    if (error) done.set_exception(error);
    else done.set_value();
  });
  done.get_future().get();
  if (OrderLog* const log = OrderLog::active()) log->wait(OrderLog::this_thread(), token);
}

Tensor copy_to_device(const Tensor& host_tensor, Device& device) {
  if (device.has_host_memory()) return host_tensor;
  Tensor copy(host_tensor.dtype(), host_tensor.shape(), device.allocator());
  write_to_device(host_tensor, copy, device);
  return copy;
}

void write_to_device(const Tensor& source, const Tensor& target, Device& device) {
  if (source.raw() == target.raw()) return;
  if (device.has_host_memory()) return target.copy_from(source);
  CpuDevice host(local_device_name("CPU", 0));
  copy_and_wait(source, host, target, device);
}

Tensor read_from_device(const Tensor& tensor, Device& device) {
  if (device.has_host_memory()) return tensor;
  CpuDevice host(local_device_name("CPU", 0));
  Tensor copy(tensor.dtype(), tensor.shape());
  copy_and_wait(tensor, device, copy, host);
  return copy;
}

}  // namespace kolo
