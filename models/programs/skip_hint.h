// What to say where a damaged picture ends the program.
#pragma once

#include <kolo/core/base/error.h>
#include <kolo/models/samples.h>

namespace kolo::models {

/// Does `work`, and adds to the error of a picture that cannot be decoded how it is left out.
template <typename Work>
auto with_skip_hint(const SampleKind& kind, const Work& work) {
  if (!kind.decoded) return work();
  try {
    return work();
  } catch (const DataLossError& error) {
    throw DataLossError("{}; --skip-damaged leaves such pictures out", error.what());
  } catch (const InvalidArgumentError& error) {
    throw InvalidArgumentError("{}; --skip-damaged leaves such pictures out", error.what());
  }
}

}  // namespace kolo::models
