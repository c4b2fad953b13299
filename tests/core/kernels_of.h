// One way to choose kernels, while it lives.
#pragma once

#include <kolo/core/kernels/own_kernels.h>

namespace kolo {

class KernelsOf {
 public:
  explicit KernelsOf(detail::KernelSource source) : before_(detail::kernel_source()) {
    detail::set_kernel_source(source);
  }
  KernelsOf(const KernelsOf&) = delete;
  KernelsOf& operator=(const KernelsOf&) = delete;
  ~KernelsOf() { detail::set_kernel_source(before_); }

 private:
  detail::KernelSource before_;
};

}  // namespace kolo
