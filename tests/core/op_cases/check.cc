#include <tests/core/op_cases/check.h>

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include <kolo/core/graph/gradients.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/runtime/session.h>

namespace kolo::op_cases {
namespace {

// The op and its gradients on one device, in one type.
struct Branch {
  Outputs inputs, results;  // inputs: the last is the weight of the results
  Branch(const Scope& outer, const std::string& device, DType type, const Case& tested) {
    Scope s = outer.device(device);
    for (const Shape& shape : tested.inputs) inputs.push_back(placeholder(s, type, shape));
    const Output y = tested.build(s, inputs);
    results.push_back(y);
    if (!tested.has_gradient) return;
    const Outputs variables = inputs;
    inputs.push_back(placeholder(s, type, y.shape()));
    for (const Output& gradient : gradients(s, {y}, variables, {inputs.back()}))
      if (gradient.node != nullptr) results.push_back(gradient);
  }
  std::vector<Tensor> run(Session& session, const std::vector<Tensor>& values) const {
    Feeds feeds;
    for (std::size_t i = 0; i < inputs.size(); ++i) feeds.push_back({inputs[i], values[i]});
    return session.run(std::vector<Fetch>(results.begin(), results.end()), feeds);
  }
};

}  // namespace

Tensor random_tensor(const Shape& shape, std::mt19937& bits) {
  std::uniform_real_distribution<float> number(-1, 1);
  std::vector<float> numbers(static_cast<std::size_t>(shape.elements()));
  for (float& x : numbers) x = number(bits);
  return Tensor::of<float>(shape, std::span<const float>(numbers));
}

Tensor wide(const Tensor& narrow, bool magnitudes) {
  std::vector<double> numbers;
  for (const float x : narrow.span<float>()) numbers.push_back(magnitudes ? std::abs(x) : x);
  return Tensor::of<double>(narrow.shape(), std::span<const double>(numbers));
}

SessionConfig strict_config(Precision precision) {
  SessionConfig made;
  made.allow_soft_placement = false;
  made.graph_options.precision = precision;
  made.gpu_options.allow_growth = true;  // tools that watch the GPU need memory there, too
  return made;
}

bool same_bits(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() && std::memcmp(a.raw(), b.raw(), a.bytes()) == 0;
}

double error_of(const Tensor& narrow, const Tensor& exact, const Tensor& magnitudes, Judge judge) {
  const auto ours = narrow.span<float>();
  const auto right = exact.span<double>();
  double largest = judge == Judge::norms ? 1 : 1e-30, worst = 0;
  for (const double x : right) largest = std::max(largest, std::abs(x));
  for (std::size_t i = 0; i < ours.size(); ++i) {
    const double magnitude = judge == Judge::sums ? std::max(magnitudes.span<double>()[i], 1e-30) : largest;
    const double error = std::abs(static_cast<double>(ours[i]) - right[i]) / magnitude;
    if (!(error <= worst)) worst = error;  // NaN stays
  }
  return worst;
}

bool has_products(const Case& tested) {
  return tested.name.find("matmul") != std::string::npos || tested.name.find("conv2d") != std::string::npos;
}

// The norm of the differences, as a part of the exact result's; NaN where an element is one.
double error_of_norm(const Tensor& narrow, const Tensor& exact) {
  const auto ours = narrow.span<float>();
  const auto right = exact.span<double>();
  double difference = 0, whole = 1e-60;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    const double d = static_cast<double>(ours[i]) - right[i];
    difference += d * d;
    whole += right[i] * right[i];
  }
  return std::sqrt(difference / whole);
}

Verdict check(const Case& tested, const std::string& device, int repeats, Precision precision) {
  const bool is_exact = tested.judge == Judge::same || tested.judge == Judge::drawn;
  const bool compares_bits = is_exact && device != "/cpu:0";
  Graph graph;
  const Scope s(graph);
  const Branch ours(s, device, DType::f32, tested);
  const Branch exact(s, "/cpu:0", compares_bits ? DType::f32 : DType::f64, tested);
  std::mt19937 bits(7);
  std::vector<Tensor> values, wides, magnitudes;
  for (const Output& input : ours.inputs) {
    values.push_back(random_tensor(input.shape(), bits));
    wides.push_back(wide(values.back(), false));
    magnitudes.push_back(wide(values.back(), true));
  }
  Session session(graph, strict_config(precision));
  const std::vector<Tensor> first = ours.run(session, values);
  int differing = 0;
  for (int i = 1; i < repeats && tested.judge != Judge::drawn; ++i) {
    const std::vector<Tensor> again = ours.run(session, values);
    differing += !std::equal(first.begin(), first.end(), again.begin(), same_bits);
  }
  if (differing > 0)
    return {static_cast<double>(differing), fmt::format("of {} repeats have other bits", repeats), 0};
  if (compares_bits) {
    const std::vector<Tensor> cpu = exact.run(session, values);
    const bool same = std::equal(first.begin(), first.end(), cpu.begin(), same_bits);
    return {same ? 0.0 : 1.0, "other bits than the CPU's", 0};
  }
  const std::vector<Tensor> right = exact.run(session, wides), sums = exact.run(session, magnitudes);
  double worst = 0;
  for (std::size_t i = 0; i < first.size(); ++i) {
    const bool is_number = right[i].dtype() == DType::f64;
    const double error = is_number && precision == Precision::tf32 ? error_of_norm(first[i], right[i])
                         : is_number ? error_of(first[i], right[i], sums[i], tested.judge)
                                     : (same_bits(first[i], right[i]) ? 0 : 1);
    if (!(error <= worst)) worst = error;
  }
  if (precision == Precision::tf32) return {worst, "of the norm", kOfTf32};
  return {worst, tested.judge == Judge::sums ? "of the sum of magnitudes" : "of the largest element",
          tested.judge == Judge::near || is_exact ? kOfOthers : kOfProducts};
}

}  // namespace kolo::op_cases
