#include <kolo/models/programs/batch_folder.h>

#include <fmt/core.h>

#include <string_view>

#include <kolo/models/programs/kept_switches.h>

namespace kolo::models {

std::string in_batch_job(const std::string& option, const std::string& folder,
                         const kolo::detail::BatchJob& job) {
  std::string named;
  for (size_t at = 0; at < folder.size();) {
    const size_t open = folder.find('{', at);
    const size_t close = open == std::string::npos ? open : folder.find('}', open);
    if (close == std::string::npos) return named + folder.substr(at);
    const std::string_view name = std::string_view(folder).substr(open, close + 1 - open);
    if (name != "{job}" && name != "{array}")
      throw UsageError(
          fmt::format("--{} \"{}\": {} is not known; allowed: {{job}}, {{array}}", option, folder, name));
    const std::string& number = name == "{job}" ? job.job : job.task;
    if (number.empty())
      throw UsageError(
          fmt::format("--{} \"{}\": {}; leave {} out", option, folder,
                      name == "{job}" ? "this is no batch job" : "this is no task of a job array", name));
    named += folder.substr(at, open - at) + number;
    at = close + 1;
  }
  return named;
}

}  // namespace kolo::models
