// A model of the zoo with the weights of a checkpoint folder, on all ranks: what is evaluated or predicts.
#pragma once

#include <cstdint>
#include <string>

#include <kolo/core/graph/graph.h>
#include <kolo/core/graph/scope.h>
#include <kolo/core/runtime/session.h>
#include <kolo/models/programs/own_gpu.h>
#include <kolo/models/programs/train_options.h>
#include <kolo/models/samples.h>

namespace kolo::models {

/// Throws InvalidArgumentError where the checkpoint was trained with --normalize and the options lack it, or
/// with --average-decay the other way round. Warns where averages are left aside. Reads the index alone.
void check_fits(const TrainOptions& options, const std::string& checkpoint);

class RestoredModel {
 public:
  /// Rank 0 reads the newest intact checkpoint, and all get its weights: the moving averages with
  /// --average-decay. Collective. Throws a SharedError for what the folder has not.
  RestoredModel(const TrainOptions& options, const SampleKind& kind, const OwnGpu& gpu);
  RestoredModel(const RestoredModel&) = delete;
  RestoredModel& operator=(const RestoredModel&) = delete;

  Scope scope() { return Scope(graph_); }
  Session& session() { return session_; }
  Output samples() const { return samples_; }
  Output logits() const { return logits_; }  // [N,classes], in the inference form
  std::int64_t global_step() const { return global_step_; }

 private:
  void build(const TrainOptions& options, const SampleKind& kind);

  Graph graph_;
  Output samples_, logits_;
  Operation use_averages_;
  Session session_;
  std::int64_t global_step_ = 0;
};

}  // namespace kolo::models
