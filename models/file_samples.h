// Samples that are decoded from files, each from its own.
#pragma once

#include <cstdint>
#include <utility>

#include <kolo/models/samples.h>

namespace kolo::models {

/// Any number of threads check and read at the same time.
class FileSamples : public SampleSet {
 public:
  /// Throws what would keep a sample from being read, as far as the beginning of its file tells.
  virtual void check(std::int64_t index) const = 0;

 protected:
  explicit FileSamples(SampleKind kind) : SampleSet(std::move(kind)) {}
};

}  // namespace kolo::models
