// Layers of two or more inputs. Calls throw InvalidArgumentError `A merge layer should be called on a list of
// at least 2 inputs. Got 1 inputs.` and for shapes that do not go together.
#pragma once

#include <initializer_list>

#include <kolo/models/keras/core_layers.h>

namespace kolo::keras {

/// The sum; shapes broadcast behind the batch, here and in those below.
class Add : public Layer {
 public:
  explicit Add(const LayerOptions& options = {});
};
/// The first less the second, of exactly two.
class Subtract : public Layer {
 public:
  explicit Subtract(const LayerOptions& options = {});
};
/// The product of its inputs, element by element.
class Multiply : public Layer {
 public:
  explicit Multiply(const LayerOptions& options = {});
};
/// The mean of its inputs, element by element.
class Average : public Layer {
 public:
  explicit Average(const LayerOptions& options = {});
};
/// The larger of its inputs, element by element.
class Maximum : public Layer {
 public:
  explicit Maximum(const LayerOptions& options = {});
};
/// The smaller of its inputs, element by element.
class Minimum : public Layer {
 public:
  explicit Minimum(const LayerOptions& options = {});
};
/// Side by side along `axis`. Throws InvalidArgumentError `A `Concatenate` layer requires inputs with
/// matching shapes except for the concat axis.`
class Concatenate : public Layer {
 public:
  explicit Concatenate(int axis = -1, const LayerOptions& options = {});
};
/// For each sample the sum of products along axis axes.rows of the first and axes.cols of the second input:
/// the first's other axes, then the second's; (1) for two vectors. normalize: of vectors of length 1 along
/// that axis.
class Dot : public Layer {
 public:
  explicit Dot(Pair axes, bool normalize = false, const LayerOptions& options = {});
  /// Dot({1, 2}). Throws InvalidArgumentError for another number of axes than two.
  explicit Dot(std::initializer_list<std::int64_t> axes, bool normalize = false,
               const LayerOptions& options = {});
};

}  // namespace kolo::keras
