#include <kolo/core/ops/pooling.h>

#include <limits>
#include <string>
#include <vector>

#include <kolo/core/base/error.h>
#include <kolo/core/ops/reductions.h>
#include <kolo/core/ops/shape_checks.h>

namespace kolo {
namespace {

Shape pooled_shape(const ShapeContext& c) {
  const Shape& images = c.input(0);
  const RowsCols window = rows_cols(c.attr<std::vector<std::int64_t>>("window"), "pooling: window");
  const RowsCols strides = rows_cols(c.attr<std::vector<std::int64_t>>("strides"), "pooling: strides");
  const Padding padding = padding_from_name(c.attr<std::string>("padding"));
  if (!images.has_rank()) return {-1, -1, -1, -1};
  if (images.rank() != 4)
    throw InvalidArgumentError("pooling: images are {}; they must be [N,C,H,W]", images);
  const auto [rows, cols] = window_axes(images, window, strides, padding);
  return {images.dim(0), images.dim(1), rows.outputs, cols.outputs};
}

// Kernels number the cells of a window in this type.
void check_cells(const ShapeContext& c, DType cells) {
  const RowsCols window = rows_cols(c.attr<std::vector<std::int64_t>>("window"), "pooling: window");
  if (window[0] * window[1] > std::numeric_limits<std::int32_t>::max() || cells != max_pool_cell_type(window))
    throw InvalidArgumentError(
        "max_pool: the cells of a window of {} × {} are numbered in {}; below 256 cells u8 would be right, "
        "below 2^31 i32",
        window[0], window[1], cells);
}

// The gradient of the results, the last input, must be like them.
void pool_grad_shape(ShapeContext& c) {
  detail::check_input(c, c.num_inputs() - 1, pooled_shape(c), "as the results of the pooling");
  c.set_output(0, c.input(0));
}

AttrMap pooled_window_attrs(const Node& op) {
  return {{"window", op.attr("window")}, {"strides", op.attr("strides")}, {"padding", op.attr("padding")}};
}

OpSchema& with_window(OpSchema& schema) {
  return schema.required_attr("window", std::vector<std::int64_t>{})
      .required_attr("strides", std::vector<std::int64_t>{})
      .required_attr("padding", "SAME");
}

// MaxPool's second output tells for each result which cell of its window it came from (row · columns +
// column, counted in the whole window, padding included). It makes the gradient a scatter of dy that reads
// neither images nor results, at a sixteenth of their size for 2 × 2 windows; TensorFlow searches images and
// results again instead.
OpSchema max_pool_schema() {
  OpSchema schema("MaxPool");
  schema.input("images", {DType::f32, DType::f64})
      .output("y")
      .required_attr("cell_type", DType::u8)
      .output("cells", "cell_type");
  return with_window(schema)
      .shape([](ShapeContext& c) {
        const Shape shape = pooled_shape(c);
        check_cells(c, c.attr<DType>("cell_type"));
        c.set_output(0, shape);
        c.set_output(1, shape);
      })
      .gradient([](Scope& s, const Node& op, const Outputs& dy) {
        return Outputs{s.add("MaxPoolGrad", {op.input(0), op.output(1), dy[0]}, pooled_window_attrs(op))};
      });
}

OpSchema max_pool_grad_schema() {
  OpSchema schema("MaxPoolGrad");
  schema.input("images", {DType::f32, DType::f64})
      .input("cells", {DType::u8, DType::i32})
      .input("dy", "images")
      .output("dx");
  return with_window(schema).shape([](ShapeContext& c) {
    pool_grad_shape(c);
    check_cells(c, c.dtype(1));
    detail::check_input(c, 1, c.input(2), "a cell for each result");
  });
}

OpSchema avg_pool_schema() {
  OpSchema schema("AvgPool");
  schema.input("images", {DType::f32, DType::f64}).output("y");
  return with_window(schema)
      .shape([](ShapeContext& c) { c.set_output(0, pooled_shape(c)); })
      .gradient([](Scope& s, const Node& op, Output dy) {
        return Outputs{s.add("AvgPoolGrad", {op.input(0), dy}, pooled_window_attrs(op))};
      });
}

OpSchema avg_pool_grad_schema() {
  OpSchema schema("AvgPoolGrad");
  schema.input("images", {DType::f32, DType::f64}).input("dy", "images").output("dx");
  return with_window(schema).shape(pool_grad_shape);
}

const RegisterOp max_pool_op(max_pool_schema());
const RegisterOp max_pool_grad_op(max_pool_grad_schema());
const RegisterOp avg_pool_op(avg_pool_schema());
const RegisterOp avg_pool_grad_op(avg_pool_grad_schema());

void check_images(const Output& images) {
  if (images.shape().has_rank() && images.shape().rank() != 4)
    throw InvalidArgumentError("global pooling: images are {}; they must be [N,C,H,W]", images.shape());
}

AttrMap window_attrs(const PoolOptions& options) {
  return {{"window", std::vector<std::int64_t>{options.window[0], options.window[1]}},
          {"strides", std::vector<std::int64_t>{options.strides[0], options.strides[1]}},
          {"padding", name(options.padding)}};
}

}  // namespace

DType max_pool_cell_type(const RowsCols& window) {
  return window[0] < 256 && window[1] < 256 && window[0] * window[1] < 256 ? DType::u8 : DType::i32;
}

Output max_pool(const Scope& s, Output images, PoolOptions options) {
  AttrMap attrs = window_attrs(options);
  attrs.emplace("cell_type", max_pool_cell_type(options.window));
  return s.add("MaxPool", {images}, std::move(attrs));
}

Output avg_pool(const Scope& s, Output images, PoolOptions options) {
  return s.add("AvgPool", {images}, window_attrs(options));
}

Output global_max_pool(const Scope& s, Output images) {
  check_images(images);
  return reduce_max(s, images, {.axes = {2, 3}});
}
Output global_avg_pool(const Scope& s, Output images) {
  check_images(images);
  return reduce_mean(s, images, {.axes = {2, 3}});
}

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
