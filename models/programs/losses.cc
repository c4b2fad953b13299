#include <kolo/models/programs/losses.h>

#include <algorithm>
#include <array>

#include <kolo/core/ops/losses.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/ops/reductions.h>

namespace kolo::models {
namespace {

// The first of a kind is the usual one.
constexpr std::array kLosses = {
    Loss{"softmax", LabelKind::one_class, softmax_cross_entropy},
    Loss{"mse", LabelKind::numbers, mean_squared_error},
    Loss{"mae", LabelKind::numbers,
         [](const Scope& s, Output error, Output) { return reduce_mean(s, abs(s, error)); }},
    Loss{"huber", LabelKind::numbers,
         [](const Scope& s, Output error, Output none) { return huber_loss(s, error, none); }},
    Loss{"bce", LabelKind::several,
         [](const Scope& s, Output logits, Output labels) {
           return reduce_mean(s, sigmoid_cross_entropy_with_logits(s, logits, labels));
         }},
};

}  // namespace

const Loss* find_loss(const std::string& name) {
  const auto* const found =
      std::find_if(kLosses.begin(), kLosses.end(), [&](const Loss& loss) { return loss.name == name; });
  return found == kLosses.end() ? nullptr : found;
}

const Loss& usual_loss(LabelKind kind) {
  return *std::find_if(kLosses.begin(), kLosses.end(), [&](const Loss& loss) { return loss.of == kind; });
}

std::string loss_names(const char* separator, const char* between) {
  std::string names;
  for (const Loss& loss : kLosses) {
    if (!names.empty()) names += &loss == &kLosses.back() ? between : separator;
    names += loss.name;
  }
  return names;
}

}  // namespace kolo::models
