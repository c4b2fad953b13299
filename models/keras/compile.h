// What a model is trained by.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <kolo/models/keras/losses.h>
#include <kolo/models/keras/metrics.h>
#include <kolo/models/keras/optimizers.h>

namespace kolo::keras {

struct CompileOptions {
  Optimizer optimizer = "rmsprop";
  Losses loss = {};
  std::vector<Metric> metrics = {};                 // of every output with a loss
  std::map<std::string, double> loss_weights = {};  // by output name; missing: 1
  std::vector<Metric> weighted_metrics = {};        // with the samples' weights
};

}  // namespace kolo::keras
