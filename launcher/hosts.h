// The machines of a job: from --host, from --hostfile, and how ranks spread over them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kolo::launcher {

struct Host {
  std::string name;
  int slots = 1;  // ranks it takes
  bool operator==(const Host&) const = default;
};

/// `a:2,b`: names with an optional number of slots (1). A host named twice counts once, with the slots of
/// both. Throws InvalidArgumentError for an empty name or slots that are no whole number of at least 1.
std::vector<Host> parse_hosts(std::string_view list);

/// One host a line, `a slots=2` as in Open MPI or `a:2`, without a number 1 slot; `#` starts a comment.
/// Throws NotFoundError if the file cannot be read, InvalidArgumentError `<path>:<line>: …` for a line that
/// does not parse.
std::vector<Host> read_hostfile(const std::string& path);

/// `a:2,b:1`, as mpirun's --host takes it.
std::string format_hosts(const std::vector<Host>& hosts);

int total_slots(const std::vector<Host>& hosts);

/// Ranks on each host when `ranks` of them fill the slots in order; those beyond all slots go round the hosts
/// in turn.
std::vector<int> ranks_per_host(const std::vector<Host>& hosts, int ranks);

/// True if both name one host, each with or without its domain.
bool is_same_host(std::string_view a, std::string_view b);

/// True if `name` is this machine by its name alone (localhost, 127.0.0.1, ::1, or `hostname` with or without
/// domain).
bool is_this_machine(std::string_view name, std::string_view hostname);

}  // namespace kolo::launcher
