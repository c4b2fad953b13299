// For tests of eager collectives: an allreduce of values, and examples for some number of ranks.
#pragma once

#include <gtest/gtest.h>

#include <span>
#include <vector>

#include <kolo/collectives/engine/eager.h>
#include <kolo/collectives/job/init.h>

#define NEEDS_RANKS(n) \
  if (size() != (n)) GTEST_SKIP() << "an example for " << (n) << " ranks"

namespace kolo {

template <typename T>
std::vector<T> reduced(std::vector<T> values, const Reduction& reduction, const EagerOptions& options = {}) {
  allreduce(std::span(values), reduction, options);
  return values;
}

}  // namespace kolo
