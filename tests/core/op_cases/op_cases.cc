#include <fmt/core.h>

#include <cstdint>
#include <limits>
#include <span>
#include <utility>

#include <kolo/core/ops/activations.h>
#include <kolo/core/ops/attention.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/convolution.h>
#include <kolo/core/ops/indexing.h>
#include <kolo/core/ops/linalg.h>
#include <kolo/core/ops/losses.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/ops/normalization.h>
#include <kolo/core/ops/pooling.h>
#include <kolo/core/ops/reductions.h>
#include <kolo/core/ops/shapes.h>
#include <tests/core/op_cases/op_cases.h>

namespace kolo::op_cases {
namespace {

Build reduced(Output (*op)(const Scope&, Output, ReduceOptions), std::vector<std::int64_t> axes) {
  return
      [op, axes = std::move(axes)](const Scope& s, const Outputs& x) { return op(s, x[0], {.axes = axes}); };
}

// count numbers below `rows`, each of them many times, in no order.
Output row_numbers(const Scope& s, std::int64_t count, std::int64_t rows) {
  std::vector<std::int32_t> numbers;
  for (std::int64_t i = 0; i < count; ++i) numbers.push_back(static_cast<std::int32_t>(7 * i % 11 % rows));
  return constant(s, Tensor::of<std::int32_t>({count}, std::span<const std::int32_t>(numbers)));
}

// So many that GPUs sort them. Some rows are named by none, or one by all.
void add_many_rows(std::vector<Case>& cases, bool large) {
  struct Sizes {
    std::int64_t count, rows, width;
  };
  std::vector<Sizes> sizes = {{600, 1, 33}, {700, 11, 300}, {1500, 1025, 1}};
  if (large) sizes.push_back({16384, 50257, 768});
  for (const auto [count, rows, width] : sizes) {
    cases.push_back({fmt::format("segment_sum_of_{}_rows", count),
                     Judge::sums,
                     {{count, width}},
                     [count = count, rows = rows](const Scope& s, const Outputs& x) {
                       return unsorted_segment_sum(s, x[0], row_numbers(s, count, rows), rows);
                     }});
    cases.push_back({fmt::format("gather_of_{}_rows", count),
                     Judge::sums,
                     {{rows, width}},
                     [count = count, rows = rows](const Scope& s, const Outputs& x) {
                       return gather(s, x[0], row_numbers(s, count, rows));
                     }});
  }
  cases.push_back({"gather_of_700_columns", Judge::sums, {{3, 9, 5}}, [](const Scope& s, const Outputs& x) {
                     return gather(s, x[0], row_numbers(s, 700, 9), 1);
                   }});
}

void add_products(std::vector<Case>& cases, bool large) {
  struct Sizes {
    std::int64_t rows, inner, cols;
  };
  std::vector<Sizes> sizes = {{1, 1, 1}, {3, 5, 7}, {17, 64, 1}, {1, 33, 128}, {31, 1, 9}, {64, 64, 64}};
  if (large) sizes.insert(sizes.end(), {{257, 1023, 513}, {64, 3136, 1024}, {1025, 65, 2047}});
  for (const auto [rows, inner, cols] : sizes)
    for (const int transposes : {0, 1, 2, 3}) {
      const bool a = (transposes & 1) != 0, b = (transposes & 2) != 0;
      cases.push_back(
          {fmt::format("matmul_{}x{}x{}{}{}", rows, inner, cols, a ? "_ta" : "", b ? "_tb" : ""),
           Judge::sums,
           {a ? Shape{inner, rows} : Shape{rows, inner}, b ? Shape{cols, inner} : Shape{inner, cols}},
           [a, b](const Scope& s, const Outputs& x) {
             return matmul(s, x[0], x[1], {.transpose_a = a, .transpose_b = b});
           }});
    }
  for (const int transposes : {0, 1, 2, 3}) {
    const bool a = (transposes & 1) != 0, b = (transposes & 2) != 0;
    cases.push_back({fmt::format("batch_matmul{}{}", a ? "_ta" : "", b ? "_tb" : ""),
                     Judge::sums,
                     {a ? Shape{4, 5, 3} : Shape{4, 3, 5}, b ? Shape{4, 7, 5} : Shape{4, 5, 7}},
                     [a, b](const Scope& s, const Outputs& x) {
                       return batch_matmul(s, x[0], x[1], {.transpose_a = a, .transpose_b = b});
                     }});
  }
  std::vector<std::pair<Shape, Shape>> images = {
      {{2, 1, 28, 28}, {4, 1, 5, 5}}, {{2, 3, 9, 7}, {4, 3, 3, 5}}, {{3, 5, 6, 6}, {7, 5, 1, 1}}};
  if (large)
    images.insert(images.end(), {{{16, 32, 14, 14}, {64, 32, 5, 5}}, {{2, 64, 57, 55}, {128, 64, 3, 3}}});
  for (const auto& [image, filter] : images)
    for (const auto& [down, across] : {std::pair<std::int64_t, std::int64_t>{1, 1}, {2, 2}, {3, 1}})
      for (const Padding padding : {Padding::same, Padding::valid})
        cases.push_back({fmt::format("conv2d_{}c{}_{}f{}_s{}x{}{}", image.dim(2), image.dim(1), filter.dim(2),
                                     filter.dim(0), down, across, padding == Padding::same ? "" : "_valid"),
                         Judge::sums,
                         {image, filter},
                         [down = down, across = across, padding](const Scope& s, const Outputs& x) {
                           return conv2d(s, x[0], x[1], {.strides = {down, across}, .padding = padding});
                         }});
  cases.push_back(
      {"conv2d_groups", Judge::sums, {{2, 4, 5, 6}, {6, 2, 3, 2}}, [](const Scope& s, const Outputs& x) {
         return conv2d(s, x[0], x[1], {.groups = 2});
       }});
  cases.push_back({"bias_add", Judge::sums, {{3, 5, 7, 2}, {5}}, [](const Scope& s, const Outputs& x) {
                     return bias_add(s, x[0], x[1]);
                   }});
  for (const auto& [name, axes] : {std::pair<const char*, std::vector<std::int64_t>>{"all", {}},
                                   {"first", {0}},
                                   {"middle", {1}},
                                   {"last", {2}},
                                   {"outer", {0, 2}}}) {
    cases.push_back(
        {fmt::format("reduce_sum_{}", name), Judge::sums, {{33, 5, 129}}, reduced(reduce_sum, axes)});
    cases.push_back(
        {fmt::format("reduce_mean_{}", name), Judge::sums, {{33, 5, 129}}, reduced(reduce_mean, axes)});
    cases.push_back(
        {fmt::format("reduce_max_{}", name), Judge::same, {{33, 5, 129}}, reduced(reduce_max, axes), false});
    cases.push_back(
        {fmt::format("reduce_min_{}", name), Judge::same, {{33, 5, 129}}, reduced(reduce_min, axes), false});
  }
  cases.push_back({"reduce_prod", Judge::near, {{7, 5}}, reduced(reduce_prod, {1}), false});
  cases.push_back({"add_n", Judge::same, {{9, 11}, {9, 11}, {9, 11}}, [](const Scope& s, const Outputs& x) {
                     return add_n(s, x);
                   }});
}

void add_layers(std::vector<Case>& cases) {
  for (const Shape& shape : {Shape{5, 10}, Shape{4, 65}, Shape{3, 1000}, Shape{2, 5003}, Shape{2, 50257}}) {
    const auto width = shape.dim(1);
    cases.push_back(
        {fmt::format("softmax_{}", width), Judge::near, {shape}, [](const Scope& s, const Outputs& x) {
           return softmax(s, x[0]);
         }});
    cases.push_back(
        {fmt::format("log_softmax_{}", width), Judge::near, {shape}, [](const Scope& s, const Outputs& x) {
           return log_softmax(s, x[0]);
         }});
    cases.push_back(
        {fmt::format("sparse_softmax_cross_entropy_{}", width),
         Judge::near,
         {shape},
         [rows = shape.dim(0), width](const Scope& s, const Outputs& x) {
           std::vector<std::int32_t> labels;  // the last class, too
           for (std::int64_t i = 0; i < rows; ++i)
             labels.push_back(static_cast<std::int32_t>(i == 1 ? width - 1 : 3 * i % 10));
           return sparse_softmax_cross_entropy_with_logits(
               s, x[0], constant(s, Tensor::of<std::int32_t>({rows}, std::span<const std::int32_t>(labels))));
         }});
  }
  // What a mask has ruled out, first in its row and in between, takes no part.
  cases.push_back(
      {"softmax_cross_entropy_masked", Judge::near, {{4, 100}}, [](const Scope& s, const Outputs& x) {
         std::vector<float> mask(100, 0);
         for (std::size_t i = 0; i < mask.size(); i += 3) mask[i] = -std::numeric_limits<float>::infinity();
         const Output masked =
             add(s, x[0],
                 cast(s, constant(s, Tensor::of<float>({100}, std::span<const float>(mask))), x[0].dtype()));
         return softmax_cross_entropy(s, masked, constant(s, Tensor::of<std::int32_t>({4}, {1, 2, 98, 50})));
       }});
  cases.push_back({"log_softmax_along_0", Judge::near, {{9, 33}}, [](const Scope& s, const Outputs& x) {
                     return log_softmax(s, x[0], 0);
                   }});
  for (const Padding padding : {Padding::same, Padding::valid})
    for (const std::int64_t stride : {1, 2})
      for (const auto& [name, pool] : {std::pair("max", &max_pool), {"avg", &avg_pool}})
        cases.push_back(
            {fmt::format("{}_pool_s{}{}", name, stride, padding == Padding::same ? "" : "_valid"),
             Judge::near,
             {{2, 3, 9, 7}},
             [=, pool = pool](const Scope& s, const Outputs& x) {
               return pool(s, x[0], {.window = {3, 2}, .strides = {stride, stride}, .padding = padding});
             }});
  cases.push_back(
      {"conv2d_transpose", Judge::sums, {{2, 4, 5, 4}, {4, 3, 3, 2}}, [](const Scope& s, const Outputs& x) {
         return conv2d_transpose(s, x[0], x[1], {.strides = {2, 2}});
       }});
  cases.push_back(
      {"depthwise_conv2d", Judge::sums, {{2, 3, 9, 7}, {3, 2, 3, 3}}, [](const Scope& s, const Outputs& x) {
         return depthwise_conv2d(s, x[0], x[1]);
       }});
}

// Of one place and of several tiles of 32, in heads on both sides of what tiles hold.
void add_attention(std::vector<Case>& cases, bool large) {
  struct Sizes {
    std::int64_t batch, places, heads, size;
    bool causal;
  };
  std::vector<Sizes> sizes = {{1, 1, 1, 64, true},  {2, 70, 3, 40, true}, {2, 70, 3, 40, false},
                              {1, 64, 2, 64, true}, {1, 97, 1, 65, true}, {1, 33, 2, 128, false},
                              {1, 33, 1, 129, true}};
  if (large) sizes.push_back({1, 1025, 2, 64, true});
  for (const Sizes& of : sizes)
    cases.push_back({fmt::format("self_attention_{}x{}x{}x{}{}", of.batch, of.places, of.heads, of.size,
                                 of.causal ? "_causal" : ""),
                     Judge::norms,
                     {{of.batch, of.places, 3 * of.heads * of.size}},
                     [of](const Scope& s, const Outputs& x) {
                       return self_attention(s, x[0], {.heads = of.heads, .causal = of.causal});
                     }});
}

// A row of a reduction is a warp's: sizes on both sides of its 32 lanes.
void add_norms(std::vector<Case>& cases) {
  // Whose sums are in more parts than a warp has lanes.
  cases.push_back(
      {"layer_norm_2100x33", Judge::norms, {{2100, 33}, {33}, {33}}, [](const Scope& s, const Outputs& x) {
         return layer_norm(s, x[0], x[1], x[2]);
       }});
  // The sum of a residual block: on a GPU it is the norm's own. 2049: more than a team holds of a gradient.
  const std::vector<Shape> sizes = {{7, 1},    {300, 33}, {2100, 128}, {17, 132},
                                    {9, 1025}, {6, 2048}, {70, 2049},  {3, 2052}};
  for (const Shape& shape : sizes) {
    const Shape row{shape.dim(1)};
    cases.push_back({fmt::format("sum_layer_norm_{}x{}", shape.dim(0), shape.dim(1)),
                     Judge::norms,
                     {shape, shape, row, row, row},
                     [](const Scope& s, const Outputs& x) {
                       const Output h = add(s, square(s, x[1]), bias_add(s, x[0], x[2]));
                       return add(s, h, layer_norm(s, h, x[3], x[4]));
                     }});
    cases.push_back({fmt::format("layer_norm_{}x{}", shape.dim(0), shape.dim(1)),
                     Judge::norms,
                     {shape, row, row},
                     [](const Scope& s, const Outputs& x) { return layer_norm(s, x[0], x[1], x[2]); }});
  }
  cases.push_back({"batch_norm_16x2x40x40",
                   Judge::norms,
                   {{16, 2, 40, 40}, {2}, {2}},
                   [](const Scope& s, const Outputs& x) {
                     const auto statistic = [&](double value) {
                       return cast(s, fill(s, DType::f32, {2}, value), x[0].dtype());
                     };
                     return batch_norm(s, x[0], x[1], x[2], statistic(0), statistic(1)).y;
                   }});
  for (const std::int64_t size : {1, 31, 33, 1025}) {
    cases.push_back({fmt::format("layer_norm_{}", size),
                     Judge::norms,
                     {{5, size}, {size}, {size}},
                     [](const Scope& s, const Outputs& x) { return layer_norm(s, x[0], x[1], x[2]); }});
    cases.push_back({fmt::format("self_attention_{}", size),
                     Judge::norms,
                     {{1, 5, 3 * size}},
                     [](const Scope& s, const Outputs& x) {
                       return self_attention(s, x[0], {.heads = 1, .causal = true});
                     }});
    const auto statistic = [](const Scope& s, const Outputs& x, double value) {
      return cast(s, fill(s, DType::f32, {3}, value), x[0].dtype());
    };
    cases.push_back({fmt::format("batch_norm_{}", size),
                     Judge::norms,
                     {{2, 3, size}, {3}, {3}},
                     [=](const Scope& s, const Outputs& x) {
                       return batch_norm(s, x[0], x[1], x[2], statistic(s, x, 0), statistic(s, x, 1)).y;
                     }});
    cases.push_back({fmt::format("batch_norm_inference_{}", size),
                     Judge::norms,
                     {{2, 3, size}, {3}, {3}},
                     [=](const Scope& s, const Outputs& x) {
                       return batch_norm_inference(s, x[0], x[1], x[2], statistic(s, x, 0.25),
                                                   statistic(s, x, 2));
                     }});
    cases.push_back({fmt::format("segment_sum_{}", size),
                     Judge::sums,
                     {{size, 7}},
                     [size](const Scope& s, const Outputs& x) {
                       return unsorted_segment_sum(s, x[0], row_numbers(s, size, 5), 5);
                     }});
    cases.push_back(
        {fmt::format("gather_{}", size), Judge::sums, {{5, size}}, [](const Scope& s, const Outputs& x) {
           return gather(s, x[0], row_numbers(s, 40, 5));
         }});
  }
  for (const bool is_mean : {true, false})
    cases.push_back(
        {is_mean ? "batch_norm_moving_mean" : "batch_norm_moving_variance",
         Judge::norms,
         {{6, 3, 9, 7}, {3}, {3}},
         [is_mean](const Scope& s, const Outputs& x) {
           const Output mean = cast(s, constant(s, Tensor::of<float>({3}, {0.5f, -1, 2})), x[0].dtype()),
                        variance = cast(s, constant(s, Tensor::of<float>({3}, {1, 2, 3})), x[0].dtype());
           const auto made = batch_norm(s, x[0], x[1], x[2], mean, variance, {.momentum = 0.9});
           return is_mean ? made.moving_mean : made.moving_variance;
         },
         false});
  cases.push_back({"l2_loss", Judge::near, {{50, 77}}, [](const Scope& s, const Outputs& x) {
                     return l2_loss(s, x[0]);
                   }});
  cases.push_back(
      {"global_norm", Judge::near, {{3000}, {1}, {7, 0}, {64, 65}}, [](const Scope& s, const Outputs& x) {
         return global_norm(s, x);
       }});
  for (const bool is_finite : {true, false})
    cases.push_back({is_finite ? "all_finite" : "all_finite_not",
                     Judge::same,
                     {{5000}, {3}},
                     [is_finite](const Scope& s, const Outputs& x) {
                       const Output other = is_finite ? x[1] : div(s, x[1], sub(s, x[1], x[1]));
                       return all_finite(s, {x[0], other});
                     },
                     false});
}

}  // namespace

Output number_like(const Scope& s, Output x, double value) {
  return cast(s, constant(s, static_cast<float>(value)), x.dtype());
}

std::vector<Case> all_cases(bool large) {
  std::vector<Case> cases;
  add_products(cases, large);
  add_elementwise(cases, large);
  add_layers(cases);
  add_attention(cases, large);
  add_norms(cases);
  add_many_rows(cases, large);
  add_moves(cases);
  return cases;
}

}  // namespace kolo::op_cases
