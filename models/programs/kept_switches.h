// Which switches of kolo-train a checkpoint folder keeps, and what a later command line takes of them.
#pragma once

#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include <kolo/models/folder_config.h>

namespace kolo::models {

/// A command line that cannot be obeyed: exit code 2.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// By name, without dashes; "" for a switch that takes no value.
using Switches = std::map<std::string, std::string>;

/// Those of a training alone: --evaluate refuses them on its command line, and takes none from a folder.
inline constexpr const char* kTrainingSwitches[] = {"optimizer",
                                                    "learning-rate",
                                                    "momentum",
                                                    "weight-decay",
                                                    "schedule",
                                                    "warmup",
                                                    "clip-norm",
                                                    "backward-passes",
                                                    "compression",
                                                    "steps",
                                                    "epochs",
                                                    "save-steps",
                                                    "keep",
                                                    "validate-every",
                                                    "log-steps",
                                                    "trace",
                                                    "profile",
                                                    "sharded",
                                                    "keep-going",
                                                    "seed",
                                                    "check-drift",
                                                    "early-stopping",
                                                    "keep-best",
                                                    "tensorboard",
                                                    "histogram-steps",
                                                    "global-batch",
                                                    "epoch-end",
                                                    "scale-rate",
                                                    "rescale-steps"};

/// Those that a training which goes on can end by --no-NAME. Others describe the model or have a value for
/// it.
inline constexpr const char* kSwitchesThatEnd[] = {
    "augment",      "average-decay",  "backward-passes", "clip-norm",   "compression", "early-stopping",
    "keep-best",    "momentum",       "precision",       "save-steps",  "schedule",    "sharded",
    "skip-damaged", "validate-every", "warmup",          "weight-decay"};
bool can_end(const std::string& name);

/// Those of `given` that describe the model and its training: not what is said, written or computed where.
/// The path behind --data is made absolute, and ends without a slash.
Switches kept_switches(const Switches& given);

/// Whether two paths behind --data lead to the same file or folder: with a slash at the end or without, and
/// over links. "generated" is no path.
bool is_same_data(const std::string& a, const std::string& b);

/// What the folder adds to the switches of a command line, without those of `ended`. One that is given takes
/// the place of the folder's, which rank 0 says, and one that ends; a seed does not, which it says, too.
/// Throws UsageError for another model, another size, another --target, --ignore or --missing, a loss for
/// other labels, or a normalisation that the folder's weights do not know.
Switches added_switches(const FolderConfig& folder, const Switches& given,
                        const std::vector<std::string>& ended = {});

}  // namespace kolo::models
