// The machines of a job: from --host, from --hostfile, and how ranks spread over them.
#pragma once

#include <cstddef>
#include <iosfwd>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <kolo/core/base/count_of.h>

namespace kolo::launcher {

struct Host {
  std::string name;
  int slots = 1;                // ranks it takes
  bool hostfile_alone = false;  // mpirun takes it from a hostfile only: IPv6, or with the name of a user
  bool operator==(const Host&) const = default;
};

/// `a:2,b`: names with an optional number of slots (1). A host named twice counts once, with the slots of
/// both. Throws InvalidArgumentError for an empty name, for slots that are no whole number of at least 1, and
/// for what mpirun takes from a hostfile only.
std::vector<Host> parse_hosts(std::string_view list);

/// One host a line, as in Open MPI: `a slots=2`, `a slots = 2 max-slots=4`, `user@a`, `fe80::1 slots=2`; or
/// `a:2`. Without a number it has `slots`, and max-slots limits them. `#` starts a comment, a byte order mark
/// may stand in front. Empty for a text without a host. Throws InvalidArgumentError `<source>:<line>: …` for
/// a line that does not parse.
std::vector<Host> parse_host_lines(std::istream& text, const std::string& source, int slots = 1);

/// The lines of a file, 1 slot where no number is given. Throws NotFoundError if it cannot be read,
/// InvalidArgumentError where it names no host, and what parse_host_lines throws.
std::vector<Host> read_hostfile(const std::string& path);

/// What a discovery command has printed: lines as above. A host without a number has slots_per_host, else the
/// slots that it has in `listed`, else 1. Throws InvalidArgumentError for a line that does not parse, and for
/// no host at all.
std::vector<Host> parse_discovered(const std::string& text, const std::vector<Host>& listed,
                                   std::optional<int> slots_per_host);

/// `a:2,b:1`, as mpirun's --host takes it.
std::string format_hosts(const std::vector<Host>& hosts);

/// `a, b` where ", " is between.
std::string names_of(const std::vector<Host>& hosts, std::string_view between);

int total_slots(const std::vector<Host>& hosts);

/// Ranks on each host when `ranks` of them fill the slots in order; those beyond all slots go round the hosts
/// in turn.
std::vector<int> ranks_per_host(const std::vector<Host>& hosts, int ranks);

/// True if both name one host, each with or without its domain.
bool is_same_host(std::string_view a, std::string_view b);
/// Whether a host of the list is this one, in the same sense.
bool contains_host(const std::vector<Host>& hosts, std::string_view name);

/// True if `name` is this machine: localhost in any of its spellings, a loopback address, `hostname` with or
/// without domain, or a name that /etc/hosts gives to an address of this machine. No name server is asked.
bool is_this_machine(std::string_view name, std::string_view hostname);

/// The names that lines as those of /etc/hosts give to loopback addresses and to `addresses`, in small
/// letters.
std::set<std::string> names_of_addresses(std::istream& lines, const std::set<std::string>& addresses);

}  // namespace kolo::launcher
