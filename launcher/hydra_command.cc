#include <kolo/launcher/hydra_command.h>

#include <algorithm>

#include <kolo/core/base/error.h>

namespace kolo::launcher {

std::string host_lines_of_hydra(const Options& options, const Surroundings&) {
  std::string lines;
  for (const Host& host : options.hosts) lines += format_hosts({host}) + "\n";
  return lines;
}

std::vector<std::string> compose_hydra(const Options& options, const Surroundings& found, bool tagged) {
  if (!options.hostfile.empty())
    throw InvalidArgumentError(
        "--hostfile {}: users and IPv6 are for Open MPI's mpirun; {} takes plain names of hosts",
        options.hostfile, kHydra);
  std::vector<std::string> command = {kHydra, "-n", std::to_string(options.ranks)};
  if (!options.host_list.empty()) command.insert(command.end(), {"-f", options.host_list});
  else if (!options.hosts.empty()) command.insert(command.end(), {"-hosts", format_hosts(options.hosts)});
  if (!args_bind(options)) {
    const auto cores = cores_to_bind(options, found);
    const bool may_bind = options.bind == Bind::core || all_ranks_here(options, found);
    command.insert(command.end(),
                   {"-bind-to", cores && may_bind ? "core:" + std::to_string(std::max(1, *cores)) : "none"});
  }
  // As mpirun does it. A rank alone, as of -prepend-rank, would not be told from what a rank itself writes:
  // hydra puts it before each piece that it reads.
  if (tagged) command.insert(command.end(), {"-prepend-pattern", "[1,%r]<stdout>:"});
  // It names no rank that has died: its place in this list does.
  command.emplace_back("-print-all-exitcodes");
  for (const auto& [name, entry] : exported_variables(options, found))
    if (entry.size() > name.size())
      command.insert(command.end(), {"-genv", name, entry.substr(name.size() + 1)});
  command.insert(command.end(), options.mpi_args.begin(), options.mpi_args.end());
  const std::vector<std::string> program = program_of_ranks(options, found);
  command.insert(command.end(), program.begin(), program.end());
  return command;
}

}  // namespace kolo::launcher
