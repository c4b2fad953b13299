#include <kolo/core/ops/resize.h>

#include <string>
#include <vector>

#include <kolo/core/base/error.h>
#include <kolo/core/ops/shape_checks.h>

namespace kolo {
namespace {

Shape resized(const ShapeContext& c) {
  const Shape& images = c.input(0);
  if (images.has_rank() && images.rank() != 4)
    throw InvalidArgumentError("resize: images are {}; they must be [N,C,H,W]", images);
  if (const auto method = c.attr<std::string>("method"); method != "nearest" && method != "bilinear")
    throw InvalidArgumentError("resize: the method \"{}\" is neither nearest nor bilinear", method);
  const auto [rows, cols] = rows_cols(c.attr<std::vector<std::int64_t>>("size"), "resize: size");
  if (rows < 1 || cols < 1)
    throw InvalidArgumentError("resize: the size is {} rows and {} columns; both must be at least 1", rows,
                               cols);
  if (c.attr<bool>("align_corners") && c.attr<bool>("half_pixel_centers"))
    throw InvalidArgumentError("If half_pixel_centers is True, align_corners must be False.");
  const auto dim = [&](int axis) { return images.has_rank() ? images.dim(axis) : -1; };
  if (dim(2) == 0 || dim(3) == 0)
    throw InvalidArgumentError("resize: images are {}; they must have at least one row and column", images);
  return {dim(0), dim(1), rows, cols};
}

void resize_grad_shape(ShapeContext& c) {
  detail::check_input(c, 1, resized(c), "as the resized images");
  c.set_output(0, c.input(0));
}

OpSchema with_places(const char* name) {
  return OpSchema(name)
      .input("images", {DType::f32, DType::f64})
      .required_attr("size", std::vector<std::int64_t>{})
      .required_attr("method", "nearest")
      .attr("align_corners", false)
      .attr("half_pixel_centers", false);
}

// The gradient op takes the images for their shape alone.
const RegisterOp resize_op(with_places("Resize")
                               .output("y")
                               .shape([](ShapeContext& c) { c.set_output(0, resized(c)); })
                               .gradient([](Scope& s, const Node& op, Output dy) {
                                 return Outputs{s.add("ResizeGrad", {op.input(0), dy}, op.attrs())};
                               }));
const RegisterOp resize_grad_op(
    with_places("ResizeGrad").input("dy", "images").output("dx").shape(resize_grad_shape));

}  // namespace

Output resize(const Scope& s, Output images, RowsCols size, ResizeMethod method, ResizeOptions options) {
  return s.add("Resize", {images},
               {{"size", std::vector<std::int64_t>{size[0], size[1]}},
                {"method", method == ResizeMethod::nearest ? "nearest" : "bilinear"},
                {"align_corners", options.align_corners},
                {"half_pixel_centers", options.half_pixel_centers}});
}

}  // namespace kolo
