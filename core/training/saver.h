// Saves a session's variables as checkpoints and restores them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <kolo/core/ops/variables.h>
#include <kolo/core/runtime/session.h>
#include <kolo/core/training/checkpoint_files.h>
#include <kolo/core/training/saved_names.h>

namespace kolo {

class GatheredState;
struct CheckpointExtra;
namespace detail {
class RankStates;
class RemoteSession;
}  // namespace detail

/// What a Saver keeps, and how it writes.
struct SaverOptions {
  int max_to_keep =
      5;  // older checkpoints are removed; 0: all stay, and the state file lists the newest alone
  // One checkpoint that would be removed stays for ever whenever so many hours have passed.
  std::optional<double> keep_checkpoint_every_n_hours = {};
  bool pad_step_number = false;  // model.ckpt-00000020
  bool reshape = false;  // restored tensors may have other shapes than their variables, if as many elements
  bool allow_empty = false;  // no variables: then nothing is saved or restored
  bool sharded =
      false;  // of a session on servers: each task writes its own variables, into the folder that all have
};

/// The state file of a save, and tensors that are saved next to the variables.
struct CheckpointStateOptions {
  std::string latest_filename = "checkpoint";  // the folder's state file
  bool write_state = true;                     // else it stays as it is
  // Saved beside the variables, under names that none of them has; not by sessions on servers that save
  // `sharded`. CheckpointReader reads them.
  std::map<std::string, Tensor> tensors = {};
  // Called when the checkpoint is written, before its files get their names; what it throws leaves no trace.
  // Not where it is `sharded`.
  std::function<void()> before_publishing = {};
};

/// Variables by the names that checkpoints have for them, where those are not the graph's: {{"weights", w}}.
using NamedVariables = std::vector<std::pair<std::string, Variable>>;

/// One process writes a folder. One thread, between runs of the session.
class Saver {
 public:
  /// Over the graph's global variables as they are now; scratch (rank_state.h) is left out. The parts of a
  /// partitioned variable are one tensor in a checkpoint, and any number of parts is restored from it. Throws
  /// InvalidArgumentError `No variables to save`, `At least two variables have the same name: <n>`, for some
  /// of the parts of a variable without the others, or for strings that are a part or each rank's own.
  explicit Saver(const Graph& graph, SaverOptions options = {});
  explicit Saver(std::vector<Variable> variables, SaverOptions options = {});
  /// Also throws InvalidArgumentError `The same saveable will be restored with two names: <n>`, and what
  /// SavedNames::set throws.
  explicit Saver(const NamedVariables& variables, SaverOptions options = {});

  /// Writes checkpoint `prefix`-`global_step`, `prefix` without a step; returns that path. The session's
  /// random positions and `state` (JSON values by name) go with it. A part (rank_state.h) is written as the
  /// whole tensor that it is part of; with several ranks, what is each rank's own as `<variable>/rank_<r>`
  /// for each. Where that is spread over the ranks (is_spread_over_ranks) they have put it together before,
  /// and rank 0 saves what it is given of them. Then the folder's state file, then older checkpoints over
  /// max_to_keep are removed. sharded: each task with variables writes a file of its own; throws
  /// FailedPreconditionError `checkpoint_dir <d> is not the same folder on <task>` where it is not, and what
  /// a task cannot write with the task in the text. Throws InvalidArgumentError `'latest_filename' must not
  /// contain path components`, `'latest_filename' collides with 'save_path'`, `Parent directory of <p>
  /// doesn't exist, can't save.`, FailedPreconditionError for an uninitialised variable, and for spread state
  /// that was not put together or has changed since then, and what write_checkpoint throws; checkpoints that
  /// were there are intact then.
  std::string save(Session& session, const std::string& prefix, std::optional<std::int64_t> global_step = {},
                   const std::map<std::string, std::string>& state = {},
                   const GatheredState* gathered = nullptr, const CheckpointStateOptions& options = {});

  /// Gives the variables and random positions the values of checkpoint `path`, of whichever form; returns its
  /// index. Tensors of
  /// the file that no variable asks for are ignored; optional variables (rank_state.h) that it lacks are
  /// initialised, and so are scratch, and what is each rank's own where another number of ranks wrote it (one
  /// info line). With several ranks this rank's parts and own values are restored: a monitored session hands
  /// out those of the others, else each rank restores. Checks names, types, shapes and sums before it changes
  /// anything. Throws InvalidArgumentError `The passed save_path is not a valid checkpoint: <p>` if it has no
  /// index, NotFoundError naming the variables that it lacks, InvalidArgumentError naming those of another
  /// shape, DataLossError for damage.
  CheckpointIndex restore(Session& session, const std::string& path);

  /// Checkpoint `path`, which is there and intact, counts as the one saved last from here on: what a training
  /// that goes on from it does instead of saving it again. Writes the state file and removes older
  /// checkpoints over max_to_keep, but touches no file of this one.
  void adopt(const std::string& path);

  /// For those who compare a checkpoint with the graph.
  const detail::SavedNames& names() const { return names_; }
  /// Paths, oldest first.
  const std::vector<std::string>& last_checkpoints() const { return checkpoints_.paths(); }
  /// Takes over the checkpoints of an earlier run, oldest first, as far as they still exist.
  void recover_last_checkpoints(const std::vector<std::string>& paths);

 private:
  Saver(std::vector<Variable> variables, detail::SavedNames names, SaverOptions options);
  std::vector<Variable> saved_variables(const detail::RankStates& states) const;
  std::map<std::string, Tensor> tensors_of(Session& session, const GatheredState* gathered) const;
  void save_sharded(detail::RemoteSession& remote, Session& session, const std::string& path,
                    CheckpointExtra extra) const;
  void check_fits(const CheckpointIndex& index, const detail::RankStates& states,
                  const std::string& path) const;
  void note_saved(const std::string& path, const CheckpointStateOptions& options);

  std::vector<Variable> variables_;
  detail::SavedNames names_;
  SaverOptions options_;
  detail::CheckpointList checkpoints_;
};

}  // namespace kolo
