// How a node holds a C++ object: as an attribute that owns it.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include <kolo/core/base/mutex.h>
#include <kolo/core/ops/input.h>

namespace kolo::detail {

/// The source of an iterator, shared by all plans that run it.
struct HeldSource {
  explicit HeldSource(std::shared_ptr<ElementSource> of) : source(std::move(of)) {}
  std::int64_t address = reinterpret_cast<std::int64_t>(this);
  Mutex mutex;
  std::shared_ptr<ElementSource> source KOLO_GUARDED_BY(mutex);
};

/// A tensor whose buffer keeps the source alive, as long as any copy of it lives.
Tensor hold(std::shared_ptr<ElementSource> source);
/// The source in it.
HeldSource& held(const Tensor& tensor);
std::vector<ElementSource::Component> components_of(const Tensor& tensor);

}  // namespace kolo::detail
