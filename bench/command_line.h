// How kolo-bench reads its command lines.
#pragma once

#include <boost/program_options.hpp>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace kolo::bench {

/// A command line that is wrong: exit code 2.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// What every command takes: --json, --help, --version.
boost::program_options::options_description common_options();
/// argv[0] is the command. Throws UsageError for what is neither in `of_command` nor common.
boost::program_options::variables_map parse(const boost::program_options::options_description& of_command,
                                            int argc, const char* const* argv);

/// The items of an option's list, which has commas between; at least one.
std::vector<std::string> items_of(const boost::program_options::variables_map& values, const char* option);
/// A whole number from `least` to `most`; `option` is named in the error.
std::int64_t count(const char* option, const std::string& text, std::int64_t least, std::int64_t most);
/// A number from 0 to below 1.
double share_of(const boost::program_options::variables_map& values, const char* option);
/// --seconds, above 0.
double seconds_of(const boost::program_options::variables_map& values);

}  // namespace kolo::bench
