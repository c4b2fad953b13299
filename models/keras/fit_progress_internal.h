// How far a fit has come: what a checkpoint of it holds beside the variables.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <kolo/models/keras/logger_callbacks.h>
#include <kolo/models/keras/trainer_internal.h>

namespace kolo::keras::detail {

struct FitProgress {
  std::int64_t epoch = 0;
  std::int64_t batch = 0;                            // of the epoch, that comes next
  std::optional<DataPlace> place = DataPlace{};      // where it begins; none: a checkpoint did not tell
  std::vector<std::shared_ptr<BaseLogger>> loggers;  // all have the sums of the epoch so far
  const std::vector<AnyCallback>& callbacks;         // the user's

  /// JSON, with the state of each of the user's callbacks by its place.
  std::string text() const;
  /// Throws InvalidArgumentError for what text() of such a training has not written.
  void take(const std::string& text);
};

}  // namespace kolo::keras::detail
