// kolo-bench pictures: reading pictures for training on one core.
#pragma once

#include <cstdint>
#include <string>

namespace kolo::bench {

struct PicturesBenchOptions {
  std::string data;         // a folder of pictures
  std::int64_t side = 224;  // of a sample, in pixels
  std::string augment;      // as augmentation_from takes it; "": as in an evaluation
  double seconds = 8;       // after each picture was read once
  bool json = false;
};

/// Prints how many pictures a second one thread reads, decodes, brings to [3,side,side] and changes. Throws
/// what the readers throw, and InternalError where a picture with the same random numbers is not the same
/// again.
void pictures_bench(const PicturesBenchOptions& options);

}  // namespace kolo::bench
