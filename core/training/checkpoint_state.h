// The text file `checkpoint` of a folder: which checkpoints it holds and which is the newest.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace kolo {

/// Entries are as written: relative ones are meant from the folder of the state file on.
struct CheckpointState {
  std::string model_checkpoint_path;                    // the newest
  std::vector<std::string> all_model_checkpoint_paths;  // oldest first
};

/// `model_checkpoint_path: "model.ckpt-20"`, then a line `all_model_checkpoint_paths: "…"` for each, as
/// TensorFlow writes it.
std::string checkpoint_state_text(const CheckpointState& state);
/// Nothing if `text` is not of that form.
std::optional<CheckpointState> parse_checkpoint_state(const std::string& text);

/// Nothing if the file is missing; a damaged one counts as missing, with the warning `Checkpoint ignored: …`.
std::optional<CheckpointState> read_checkpoint_state(const std::string& directory,
                                                     const std::string& filename = "checkpoint");
/// Atomically, and on the disk when it returns. Throws as DurableFile does.
void write_checkpoint_state(const CheckpointState& state, const std::string& directory,
                            const std::string& filename = "checkpoint");

}  // namespace kolo
