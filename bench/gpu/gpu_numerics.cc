// gpu_numerics: every kernel of the plug-in on random data against the CPU in f64; --help says more. It uses
// kolo's public face alone: what is compared is what programs get.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <kolo/core/base/error.h>
#include <kolo/core/base/log.h>
#include <kolo/core/device/gpu_platform.h>
#include <kolo/core/graph/gradients.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/linalg.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/ops/reductions.h>
#include <kolo/core/ops/shapes.h>
#include <kolo/core/ops/variables.h>
#include <kolo/core/runtime/session.h>
#include <kolo/optimizer/registry.h>
#include <tests/core/op_cases/check.h>

namespace kolo::bench {
namespace {

using namespace op_cases;

int repeats = 20;

bool has_failed = false;

void row(const std::string& test, const std::string& status, double value, const std::string& unit,
         double ceiling) {
  has_failed = has_failed || status == "failed";
  const auto number = [](double x) { return std::isfinite(x) ? fmt::format("{:.3g}", x) : "null"; };
  std::string words;
  for (const char c : unit)
    if (c >= ' ' && c != '"' && c != '\\') words += c;
  fmt::print(R"({{"test":"numerics/{}","status":"{}","value":{},"unit":"{}","ceiling":{}}})"
             "\n",
             test, status, number(value), words, number(ceiling));
  std::fflush(stdout);
}

// The GPU's memory, as far as the next session will use it, holds NaN: what a kernel leaves out shows.
void poison() {
  Graph graph;
  const Scope s = Scope(graph).device("/gpu:0");
  const Output filled = fill(s, DType::f32, {1 << 21}, std::numeric_limits<double>::quiet_NaN());
  Session(graph, strict_config()).run(reduce_max(s, filled));
}

void check_case(const Case& tested, Precision precision = Precision::f32) {
  poison();
  const Verdict found = check(tested, "/gpu:0", repeats, precision);
  row(tested.name + (precision == Precision::tf32 ? "_tf32" : ""),
      found.error <= found.limit ? "passed" : "failed", found.error, found.unit, found.limit);
}

// Variables and slots after some updates.
std::vector<Tensor> updated(const std::string& rule, const char* device) {
  Graph graph;
  Scope s = Scope(graph).device(device);
  std::mt19937 bits(11);
  const Variable v(s.named("v"), constant(s, random_tensor({37, 3}, bits)));
  const Output gradient = placeholder(s, DType::f32, {37, 3});
  const auto optimizer = make_optimizer(rule, {.learning_rate = optimizer_traits(rule).learning_rate});
  const GradientPair pair{gradient, v};
  const Operation update = optimizer->apply_gradients(s, std::span(&pair, 1));
  const Operation first = global_variables_initializer(Scope(graph));
  Session session(graph, strict_config());
  session.run(first);
  for (int step = 0; step < 5; ++step) session.run(update, {{gradient, random_tensor({37, 3}, bits)}});
  std::vector<Fetch> all;
  for (const Variable& variable : global_variables(graph)) all.emplace_back(variable);
  return session.run(all);
}

// Rules with powers or norms of whole tensors in them need not agree to the last bit.
void check_update(const std::string& rule) {
  poison();
  const std::vector<Tensor> gpu = updated(rule, "/gpu:0"), cpu = updated(rule, "/cpu:0");
  double error = std::equal(gpu.begin(), gpu.end(), cpu.begin(), same_bits) ? 0 : INFINITY;
  const bool near = rule == "ftrl" || rule == "lamb" || rule == "lars";
  if (near && error > 0) {
    error = 0;
    for (std::size_t i = 0; i < gpu.size(); ++i)
      if (gpu[i].dtype() == DType::f32)
        error = std::max(error, error_of(gpu[i], wide(cpu[i], false), cpu[i], Judge::near));
  }
  const double limit = near ? kOfProducts : 0;
  row("update_" + rule, error <= limit ? "passed" : "failed", error,
      near ? "of the largest element" : "other bits than the CPU's", limit);
}

// Each GPU has a part of the batch, the CPU adds the gradients up.
void check_towers(int gpus) {
  Graph graph;
  Scope s(graph);
  std::mt19937 bits(5);
  const Tensor x = random_tensor({8 * gpus, 19}, bits), w = random_tensor({19, 10}, bits);
  const auto gradient = [](Scope& tower, Output part, Output weights) {
    const Output y = tanh(tower, matmul(tower, part, weights));
    return gradients(tower, {reduce_sum(tower, square(tower, y))}, {weights})[0];
  };
  const Output all = placeholder(s, DType::f32, x.shape()), weights = placeholder(s, DType::f32, w.shape());
  Outputs towers;
  for (int gpu = 0; gpu < gpus; ++gpu) {
    Scope tower = s.device(fmt::format("/gpu:{}", gpu));
    const Output part = slice(s.device("/cpu:0"), all, {8 * gpu, 0}, {8, 19});
    towers.push_back(gradient(tower, part, weights));
  }
  const Output sum = add_n(s.device("/cpu:0"), towers);
  Scope cpu = s.device("/cpu:0");
  const Output exact = gradient(cpu, cast(cpu, all, DType::f64), cast(cpu, weights, DType::f64));
  Session session(graph, strict_config());
  const auto results = session.run(std::vector<Fetch>{sum, exact}, {{all, x}, {weights, w}});
  const double error = error_of(results[0], results[1], results[1], Judge::near);
  row(fmt::format("towers_{}", gpus), error <= kOfProducts ? "passed" : "failed", error,
      "of the largest element", kOfProducts);
}

// More than there is: an error that says so, behind which the process goes on.
void check_memory() {
  Graph graph;
  const Scope s = Scope(graph).device("/gpu:0");
  const Output endless = reduce_max(s, fill(s, DType::f32, {std::int64_t{1} << 44}, 1));
  const Output small = reduce_max(s, fill(s, DType::f32, {3}, 2));
  Session session(graph, strict_config());
  std::string text = "more memory than there is was given";
  try {
    session.run(endless);
  } catch (const ResourceExhaustedError& error) {
    text = error.what();
  }
  const bool good =
      text.find("is out of memory") != std::string::npos && session.run(small).value<float>() == 2;
  row("memory", good ? "passed" : "failed", NAN, text, NAN);
}

int run(const std::string& only, bool large, bool tf32) {
  const auto platform = gpu_platform(DeviceOptions());
  if (platform == nullptr) return row("all", "skipped", NAN, "no CUDA device", NAN), 0;

  const auto guarded = [&](const std::string& name, const std::function<void()>& work) {
    if (!only.empty() && name.find(only) == std::string::npos) return;
    try {
      work();
    } catch (const std::exception& error) {
      const std::string text = error.what();
      const bool missing = text.starts_with("Cannot assign a device to node");
      row(name, missing ? "skipped" : "failed", NAN, missing ? "there is no kernel for GPUs yet" : text, NAN);
    }
  };
  for (const Case& tested : all_cases(large)) guarded(tested.name, [&] { check_case(tested); });
  for (const Case& tested : all_cases(large))
    if (tf32 && has_products(tested))
      guarded(tested.name + "_tf32", [&] { check_case(tested, Precision::tf32); });
  for (const std::string& rule : registered_optimizers())
    guarded("update_" + rule, [&] { check_update(rule); });
  guarded("memory", check_memory);
  guarded("towers", [&] { check_towers(static_cast<int>(visible_gpus(*platform).size())); });
  return has_failed ? 1 : 0;
}

}  // namespace
}  // namespace kolo::bench

int main(int argc, char** argv) {
  using namespace kolo::bench;
  std::string only;
  bool large = false, tf32 = false;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--large") large = true;
    else if (word == "--tf32") tf32 = true;
    else if (word == "--once") repeats = 1;
    else if (word == "--debug") kolo::set_log_level(kolo::LogLevel::debug);
    else if (word == "--only" && i + 1 < argc) only = argv[++i];
    else {
      const bool is_help = word == "--help" || word == "-h";
      fmt::print(
          is_help ? stdout : stderr,
          "Usage: gpu_numerics [--large] [--tf32] [--once] [--debug] [--only PART_OF_A_NAME]\n\n"
          "Each kernel for GPUs, forward and backward, on random data in memory that held NaN before, beside "
          "the CPU in f64:\nproducts and sums within {:.0e} of the sum of magnitudes (norms: of the largest "
          "element), the rest within {:.0e} of the\nlargest element, what IEEE 754 settles bit by bit; {} "
          "repeats give the same bits. --once: no repeats. --debug: what libraries were found to compute, "
          "too. --large: "
          "sizes for a real GPU as well. --tf32: what multiplies once more in TF32, within {:.0e} of the "
          "norm.\nA row of JSON each; exit 1 if one has failed.\n",
          kOfProducts, kOfOthers, repeats, kOfTf32);
      return is_help ? 0 : 2;
    }
  }
  return run(only, large, tf32);
}
