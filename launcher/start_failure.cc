#include <kolo/launcher/start_failure.h>

#include <fmt/core.h>

#include <vector>

#include <kolo/launcher/hosts.h>

namespace kolo::launcher {
namespace {

// ssh names the host in most of its words, but not in those on a host's key.
std::string unreachable_host(const std::string& words, const Options& options, const std::string& hostname) {
  std::vector<std::string> others;
  for (const Host& host : options.hosts)
    if (!is_this_machine(host.name, hostname)) others.push_back(host.name);
  const bool is_named = others.size() != 1 || words.find(others[0]) != std::string::npos;
  return fmt::format("a host cannot be reached: {}{}", words, is_named ? "" : " (" + others[0] + ")");
}

}  // namespace

std::string start_failure(const BannerReader& banner, const Options& options, const std::string& hostname) {
  if (const std::string& words = banner.unreachable(); !words.empty())
    return unreachable_host(words, options, hostname);
  if (const auto& missing = banner.missing())
    return missing->is_folder
               ? fmt::format("--wdir {}: {} has no such folder, or it may not be entered", missing->path,
                             missing->host)
               : fmt::format("{} cannot be started on {}: it is not there, or may not be executed",
                             missing->path, missing->host);
  if (!banner.lacks_slots()) return "";
  const std::string where = options.hosts.empty() ? "" : " on " + format_hosts(options.hosts);
  return fmt::format(
      "mpirun finds fewer slots than the {} ranks need{}; name each machine once, by its own name, with as "
      "many "
      "slots as it has ranks",
      options.ranks, where);
}

}  // namespace kolo::launcher
