// Options of kolorun as rows of a table.
#pragma once

#include <boost/program_options.hpp>

#include <span>
#include <string>
#include <vector>

namespace kolo::launcher {

struct OptionRow {
  const char* name;   // "host,H"
  const char* value;  // what --help calls it; "": an option without one
  const char* help;
  bool repeats = false;  // it may be given several times
};

/// Adds them in their order. Values are taken as text.
inline void describe(boost::program_options::options_description& all, std::span<const OptionRow> rows) {
  namespace po = boost::program_options;
  for (const OptionRow& row : rows)
    if (*row.value == '\0') all.add_options()(row.name, row.help);
    else if (row.repeats)
      all.add_options()(row.name, po::value<std::vector<std::string>>()->value_name(row.value), row.help);
    else all.add_options()(row.name, po::value<std::string>()->value_name(row.value), row.help);
}

}  // namespace kolo::launcher
