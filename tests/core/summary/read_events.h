// What an event file holds, told by the reader that shares no line with kolo: one JSON text for each event.
#pragma once

#include <sstream>
#include <string>
#include <vector>

#include "tests/shell_command.h"
#include "tests/support/paths.h"

namespace kolo {

/// Empty if the reader fails, which says why on stderr.
inline std::vector<std::string> read_events(const std::string& path) {
  const std::string command =
      "python3 '" + source_path("tests/core/summary/event_reader.py") + "' '" + path + "'";
  const Ended ended = run_command(command);
  if (ended.code != 0) return {};
  std::vector<std::string> events;
  std::istringstream lines(ended.output);
  for (std::string line; std::getline(lines, line);) events.push_back(line);
  return events;
}

}  // namespace kolo
