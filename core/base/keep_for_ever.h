// What hardware may still read or write is never given back.
#pragma once

#include <utility>
#include <vector>

#include <kolo/core/base/mutex.h>

namespace kolo::detail {

/// Keeps what `owner` owns until the process has ended. Any thread.
template <typename Owner>
void keep_for_ever(Owner owner) {
  static Mutex mutex;
  static auto* const kept = new std::vector<Owner>;  // never destroyed
  MutexLock lock(mutex);
  kept->push_back(std::move(owner));
}

}  // namespace kolo::detail
