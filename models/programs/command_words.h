// The words of kolo-train's command line as options and their values.
#pragma once

#include <boost/program_options.hpp>

#include <string>
#include <vector>

#include <kolo/models/programs/kept_switches.h>

namespace kolo::models {

/// What --no-NAME has named, without "--no-"; these words leave `words`. Throws UsageError for a switch that
/// cannot be ended so.
std::vector<std::string> take_ended(std::vector<std::string>& words);

/// Adds the words to `values`, where those that are there already stay. Words without an option before them
/// are more paths of --predict. Throws UsageError for an unknown option, and for one in the place of
/// another's value.
void store_words(const std::vector<std::string>& words,
                 const boost::program_options::options_description& described,
                 boost::program_options::variables_map& values);

/// Those of one value or none.
Switches switches_in(const boost::program_options::variables_map& values);

/// As a command line has them. Names that this version does not know a later one has written.
std::vector<std::string> words_of(const Switches& switches,
                                  const boost::program_options::options_description& described);

}  // namespace kolo::models
