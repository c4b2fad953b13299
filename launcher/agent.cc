#include <kolo/launcher/agent.h>

#include <cstdlib>
#include <iterator>
#include <sstream>

namespace kolo::launcher {
namespace {

// As `agent` or `args` of the component that starts daemons, which Open MPI 5 calls ssh.
std::string setting(const Options& options, const Surroundings& found, const std::string& which) {
  const bool prte = found.mpi.has_prte();
  const std::string name = (prte ? "plm_ssh_" : "plm_rsh_") + which;
  const auto& words = options.mpi_args;
  for (size_t i = 0; i + 2 < words.size(); ++i)
    if ((words[i] == "--mca" || words[i] == "-mca" || words[i] == "--prtemca") && words[i + 1] == name)
      return words[i + 2];
  const std::string variable = (prte ? "PRTE_MCA_" : "OMPI_MCA_") + name;
  const char* const value = std::getenv(variable.c_str());
  return value == nullptr ? "" : value;
}

std::vector<std::string> split_at_spaces(const std::string& text) {
  std::istringstream words(text);
  return {std::istream_iterator<std::string>(words), {}};
}

}  // namespace

Agent agent_of(const Options& options, const Surroundings& found) {
  Agent agent;
  agent.command = split_at_spaces(setting(options, found, "agent"));
  if (agent.command.empty()) agent.command = {"ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=5"};
  for (const std::string& word : split_at_spaces(setting(options, found, "args")))
    agent.command.push_back(word);
  agent.hostname = found.hostname;
  return agent;
}

}  // namespace kolo::launcher
