// What the files of kolo-train's command line share: which switches go together. Each check throws UsageError
// with one line.
#pragma once

#include <boost/program_options/variables_map.hpp>

#include <optional>
#include <string>
#include <vector>

#include <kolo/models/programs/kept_switches.h>
#include <kolo/models/programs/train_options.h>

namespace kolo::models {

/// --predict and --prompt, by the command line alone, before the folder adds to it.
void check_prediction(const boost::program_options::variables_map& values,
                      const std::optional<FolderConfig>& found);
/// --no-NAME, of each of the names.
void check_ended(const std::vector<std::string>& ended, const boost::program_options::variables_map& values);
/// All of them, as the folder and the command line have them.
void check_combination(const TrainOptions& options, const boost::program_options::variables_map& values);

}  // namespace kolo::models
