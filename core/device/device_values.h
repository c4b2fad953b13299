// Values on their way between the host and a device, outside of a step.
#pragma once

#include <kolo/core/device/device.h>
#include <kolo/core/tensor/tensor.h>

namespace kolo {

/// The tensor's elements in memory of `device`: the tensor itself where that is the host's. Returns when they
/// are there. Throws what the copy fails with.
Tensor copy_to_device(const Tensor& host_tensor, Device& device);
/// `source`, in the host's memory, to `target`, in that of `device`; of one type and shape. Does nothing
/// where both are the same memory.
void write_to_device(const Tensor& source, const Tensor& target, Device& device);
/// The elements of a tensor of `device`'s, when no run is under way: the tensor itself where it lies in the
/// host's memory, else a copy.
Tensor read_from_device(const Tensor& tensor, Device& device);

/// Returns when the stream has done what it has been given so far. Throws the error of a device that failed.
void wait_until_done(Stream& stream);

}  // namespace kolo
