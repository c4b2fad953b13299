#include <kolo/launcher/job_token.h>

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <kolo/core/base/error.h>

namespace kolo::launcher {
namespace {

constexpr char kVariable[] = "KOLO_CLUSTER_TOKEN_FILE";

std::string new_secret() {
  std::array<unsigned char, 32> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    throw UnavailableError("--cluster: the kernel gives no random bytes for the job's token: {}",
                           std::strerror(errno));
  return fmt::format("{:02x}\n", fmt::join(bytes, ""));
}

void write_file(const std::string& path, const std::string& text) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  const bool written =
      file >= 0 && ::write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  const int error = errno;
  if (file >= 0) ::close(file);
  if (!written)
    throw UnavailableError("--cluster: {} cannot be written: {}; it holds the job's token", path,
                           std::strerror(error));
}

}  // namespace

bool JobToken::is_wanted(const Options& options, const Surroundings& found) {
  if (options.cluster.empty() || !all_ranks_here(options, found)) return false;
  const auto is_credential = [](const std::string& entry) {
    return entry.starts_with("KOLO_CLUSTER_T");  // TOKEN_FILE, TLS_CA, TLS_CERT, TLS_KEY
  };
  return std::none_of(found.variables.begin(), found.variables.end(), is_credential) &&
         std::none_of(options.exported.begin(), options.exported.end(), is_credential);
}

JobToken::JobToken() : folder_(std::filesystem::temp_directory_path(), "kolo-job-") {
  if (folder_.path().empty())
    throw UnavailableError(
        "--cluster: {} cannot be made: {}; it holds the job's token (TMPDIR names another "
        "place)",
        (std::filesystem::temp_directory_path() / "kolo-job-XXXXXX").string(), std::strerror(errno));
  const std::string file = folder_.path() + "/token";
  write_file(file, new_secret());
  ::setenv(kVariable, file.c_str(), 1);
}

JobToken::~JobToken() { ::unsetenv(kVariable); }

}  // namespace kolo::launcher
