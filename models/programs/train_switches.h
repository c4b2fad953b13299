// The switches of kolo-train, as --help tells them.
#pragma once

#include <boost/program_options/options_description.hpp>

#include <string>
#include <vector>

namespace kolo::models {

/// Values are texts; switches without a value are bool switches.
boost::program_options::options_description described_options();

/// "mlp|lenet|…".
std::string joined(const std::vector<std::string>& words);

}  // namespace kolo::models
