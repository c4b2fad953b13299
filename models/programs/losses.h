// The losses that --loss names: a row for each.
#pragma once

#include <string>

#include <kolo/core/graph/scope.h>
#include <kolo/models/samples.h>

namespace kolo::models {

struct Loss {
  const char* name;
  LabelKind of;  // the labels that it is for
  /// Its mean over samples and outputs, a scalar. found: logits [N,outputs], or the errors of numbers to
  /// find. right: the labels, or zeros for these.
  Output (*mean)(const Scope& s, Output found, Output right);
};

/// nullptr where there is none of this name.
const Loss* find_loss(const std::string& name);
/// The one without --loss.
const Loss& usual_loss(LabelKind kind);
/// "softmax, mse, mae, huber or bce"; between: " or " of the last two.
std::string loss_names(const char* separator = ", ", const char* between = " or ");

/// What a model of such labels finds.
inline const char* plural_of(LabelKind kind) {
  switch (kind) {
    case LabelKind::one_class: return "classes";
    case LabelKind::numbers: return "numbers";
    case LabelKind::several: return "several labels";
  }
  return "";
}

}  // namespace kolo::models
