// Layer normalization of a sum, and its gradients, on a GPU that is not there, beside its formula in double
// and the differences of that.
#include <gmock/gmock.h>

#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include <kolo/core/graph/gradients.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/linalg.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/ops/normalization.h>
#include <kolo/core/runtime/session.h>

namespace kolo {
namespace {

using Numbers = std::vector<double>;

constexpr double kEpsilon = 1e-5;

struct Rows {
  std::int64_t rows, width;
};

// What layer normalization is of: x + bias + added, and its own scale and offset.
struct Operands {
  Numbers x, added, bias, scale, offset;
  std::vector<Numbers*> all() { return {&x, &added, &bias, &scale, &offset}; }
};

Numbers numbers(std::int64_t count, int salt) {
  Numbers made;
  for (std::int64_t i = 0; i < count; ++i)
    made.push_back(static_cast<float>(std::sin(0.7 * static_cast<double>(i * salt + salt))));
  return made;
}

// Σ of each element's weight times (sum + y), where y = (sum − mean) ÷ √(variance + ε) · scale + offset.
double weighed(const Operands& of, const Numbers& weights, const Rows& size) {
  double total = 0;
  for (std::int64_t row = 0; row < size.rows; ++row) {
    Numbers sum;
    for (std::int64_t j = 0; j < size.width; ++j)
      sum.push_back(of.x[row * size.width + j] + of.bias[j] + of.added[row * size.width + j]);
    const auto n = static_cast<double>(size.width);
    const double mean = std::accumulate(sum.begin(), sum.end(), 0.0) / n;
    double variance = 0;
    for (const double number : sum) variance += (number - mean) * (number - mean) / n;
    for (std::int64_t j = 0; j < size.width; ++j)
      total += weights[row * size.width + j] *
               (sum[j] + (sum[j] - mean) / std::sqrt(variance + kEpsilon) * of.scale[j] + of.offset[j]);
  }
  return total;
}

Tensor narrowed(const Numbers& wide, const Shape& shape) {
  const std::vector<float> narrow(wide.begin(), wide.end());
  return Tensor::of<float>(shape, std::span<const float>(narrow));
}

TEST(LayerNormOnAGpu, HasTheGradientsOfItsFormula) {
  for (const Rows& size : {Rows{3, 5}, {2, 36}, {2, 132}, {17, 8}, {1, 2052}}) {
    SCOPED_TRACE(std::to_string(size.rows) + " rows of " + std::to_string(size.width));
    const std::int64_t elements = size.rows * size.width;
    Operands of{numbers(elements, 1), numbers(elements, 2), numbers(size.width, 3), numbers(size.width, 4),
                numbers(size.width, 5)};
    const Numbers weights = numbers(elements, 6);
    const Shape wide{size.rows, size.width}, row{size.width};
    Graph graph;
    Scope s = Scope(graph).device("/gpu:0");
    Outputs inputs;
    Feeds feeds;
    for (Numbers* const operand : of.all()) {
      const Shape& shape = inputs.size() < 2 ? wide : row;
      inputs.push_back(placeholder(s, DType::f32, shape));
      feeds.push_back({inputs.back(), narrowed(*operand, shape)});
    }
    // Behind ops of their own, whose results may be written over.
    const Output x = neg(s, neg(s, inputs[0]));
    const Output sum = add(s, square(s, sqrt(s, exp(s, inputs[1]))), bias_add(s, x, inputs[2]));
    for (double& number : of.added) number = std::exp(number);
    const Output y = add(s, sum, layer_norm(s, sum, inputs[3], inputs[4], kEpsilon));
    std::vector<Fetch> fetches;
    for (const Output& gradient :
         gradients(s, {y}, {x, inputs[2], inputs[3], inputs[4]}, {constant(s, narrowed(weights, wide))}))
      fetches.push_back(gradient);
    Session session(graph, {.graph_options = {.precision = Precision::f32}});
    const std::vector<Tensor> made = session.run(fetches, feeds);
    Numbers* const by[] = {&of.x, &of.bias, &of.scale, &of.offset};
    for (std::size_t k = 0; k < made.size(); ++k)
      for (std::int64_t i = 0; i < made[k].elements(); i += 1 + made[k].elements() / 40) {
        constexpr double kStep = 1e-4;
        double& number = by[k]->at(static_cast<std::size_t>(i));
        const double before = number;
        number = before + kStep;
        const double above = weighed(of, weights, size);
        number = before - kStep;
        const double below = weighed(of, weights, size);
        number = before;
        const double expected = (above - below) / (2 * kStep);
        EXPECT_NEAR(made[k].data<float>()[i], expected, 2e-5 * (1 + std::abs(expected))) << k << ", " << i;
      }
  }
}

}  // namespace
}  // namespace kolo
