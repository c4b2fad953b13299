// The switches of kolo-train, as --help tells them.
#pragma once

#include <boost/program_options/options_description.hpp>
#include <boost/program_options/variables_map.hpp>

#include <optional>
#include <string>
#include <vector>

namespace kolo::models {

/// Values are texts; switches without a value are bool switches.
boost::program_options::options_description described_options();

/// The text of a switch, where the command line or the folder has it.
std::optional<std::string> given(const boost::program_options::variables_map& values, const char* name);
/// Of any switch.
bool is_given(const boost::program_options::variables_map& values, const char* name);

/// "mlp|lenet|…".
std::string joined(const std::vector<std::string>& words);

}  // namespace kolo::models
