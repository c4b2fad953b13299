// What a schedule submits at its turn: a bucket that is reduced, rows that are gathered.
#pragma once

#include <string>
#include <utility>

#include <kolo/collectives/algorithms/collective.h>
#include <kolo/collectives/progress/flight_recorder.h>

namespace kolo::detail {

class ScheduledOperation : public Collective {
 public:
  /// label: what reports call it.
  explicit ScheduledOperation(std::string label) : label_(std::move(label)) {}
  const std::string& label() const { return label_; }
  virtual OperationDetails details() const = 0;

 private:
  const std::string label_;
};

}  // namespace kolo::detail
