// Checkpoints of a whole training, from which FitOptions::resume goes on bit by bit.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <kolo/core/training/saver.h>
#include <kolo/models/keras/fit.h>

namespace kolo::keras {

/// When CheckpointCallback saves, and whether fit continues from the folder.
struct CheckpointCallbackOptions {
  std::optional<std::int64_t> save_steps = {};   // batches between checkpoints, or
  std::optional<std::int64_t> save_epochs = {};  // epochs
  int max_to_keep = 5;                           // 0: all
};

/// Saves weights, the optimizer's state, random positions, the place in the epochs with the sums of the
/// epoch, and what the callbacks have seen (Callback::state), as checkpoint `model.ckpt-<updates>` of a
/// folder: as often as asked, at the end, and where a signal stops the training. To be the last of the
/// callbacks, on all ranks; rank 0 writes and reads. A program that builds the same model and compiles it
/// alike, and fits with .resume on the same data, goes on from the newest intact one; a Source is drawn up to
/// its place. A folder is one training's: what another one has left there with more updates would be taken
/// for newer. On the thread that calls fit.
class CheckpointCallback : public Callback {
 public:
  /// Throws InvalidArgumentError unless exactly one of save_steps and save_epochs is given, above 0.
  CheckpointCallback(std::string directory, CheckpointCallbackOptions options);

  /// Makes the folder. Throws as make_checkpoint_folder does.
  void on_train_begin(Logs& logs) override;
  void on_batch_end(std::int64_t batch, Logs& logs) override;
  void on_epoch_end(std::int64_t epoch, Logs& logs) override;
  void on_train_end(Logs& logs) override;

  /// For fit, behind on_train_begin: all ranks go to the newest checkpoint; nothing happens where there is
  /// none. Collective. Throws DataLossError where none is intact, InvalidArgumentError for that of another
  /// model or training.
  void restore();
  /// For fit, where an epoch is cut: before the callbacks are told of its end. Collective.
  void save();

 private:
  std::string directory_;
  CheckpointCallbackOptions options_;
  std::shared_ptr<Saver> saver_;
  std::int64_t batches_ = 0;  // since the last one
  std::string saved_;         // the place of the last one
};

}  // namespace kolo::keras
