#include <kolo/core/base/error.h>
#include <kolo/core/ops/shapes.h>
#include <kolo/models/keras/layer_parts_internal.h>

namespace kolo::keras::detail {

void require_positive(const char* layer, const char* what, std::int64_t number) {
  if (number < 1) throw InvalidArgumentError("{}: {} is {}; it must be at least 1", layer, what, number);
}

void check_padding(const char* layer, const std::string& padding) {
  if (padding != "valid" && padding != "same")
    throw InvalidArgumentError("{}: the padding is \"{}\"; it must be \"valid\" or \"same\"", layer, padding);
}

void require_rank(const LayerImpl& layer, const Shape& shape, int rank) {
  if (shape.rank() != rank)
    throw InvalidArgumentError("Input 0 is incompatible with layer {}: expected ndim={}, found ndim={}",
                               layer.name(), rank, shape.rank());
}

void require_last_dim(const LayerImpl& layer, const Shape& shape, std::int64_t size) {
  if (shape.rank() >= 2 && (shape.dim(-1) == size || shape.dim(-1) < 0)) return;
  throw InvalidArgumentError(
      "Input 0 is incompatible with layer {}: expected axis -1 of input shape to have value {} but got shape "
      "{}",
      layer.name(), size, shape_text(shape));
}

std::int64_t known_dim(const LayerImpl& layer, const Shape& shape, int axis) {
  if (shape.rank() < 2 || shape.dim(axis) < 0)
    throw InvalidArgumentError("the layer \"{}\" needs to know dimension {} of its input, which is {}",
                               layer.name(), axis, shape_text(shape));
  return shape.dim(axis);
}

std::int64_t sample_elements(const LayerImpl& layer, const Shape& shape) {
  std::int64_t elements = 1;
  for (int axis = 1; axis < shape.rank(); ++axis) {
    if (shape.dim(axis) < 0)
      throw InvalidArgumentError("The shape of the input to \"{}\" is not fully defined (got {}).",
                                 layer.name(), shape_text(shape));
    elements *= shape.dim(axis);
  }
  return elements;
}

Output batched_reshape(const Scope& s, Output x, const Shape& shape) {
  return reshape(s, x, shape.with_dim(0, -1));
}

std::string data_format(const LayerImpl& layer) {
  return layer.has_joined() && layer.workspace().channels_last() ? "channels_last" : "channels_first";
}

Output channels_first(const CallContext& c, const LayerImpl& layer, Output images) {
  require_rank(layer, images.shape(), 4);
  return layer.workspace().channels_last() ? transpose(c.scope, images, {0, 3, 1, 2}) : images;
}

Output as_data_format(const CallContext& c, const LayerImpl& layer, Output images) {
  return layer.workspace().channels_last() ? transpose(c.scope, images, {0, 2, 3, 1}) : images;
}

}  // namespace kolo::keras::detail
