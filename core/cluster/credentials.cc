#include <kolo/core/cluster/credentials.h>

#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include <kolo/core/base/env.h>
#include <kolo/core/base/error.h>
#include <kolo/core/base/input_file.h>

namespace kolo::detail {
namespace {

constexpr std::size_t kShortestToken = 16;
constexpr std::size_t kLongestFile = std::size_t{1} << 20;

std::string path_of(const std::string& given, const char* variable) {
  return given.empty() ? env_string(variable).value_or("") : given;
}

std::string contents(const std::string& path) {
  std::string text = InputFile(path).read_all(kLongestFile);
  if (text.empty()) throw InvalidArgumentError("{} is empty; a file of credentials is not", path);
  return text;
}

std::string token_in(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0)
    throw NotFoundError("{} cannot be read: {}", path, std::strerror(errno));
  if ((status.st_mode & (S_IRWXG | S_IRWXO)) != 0)
    throw FailedPreconditionError("{} can be read by others; chmod 600", path);
  std::string token = contents(path);
  token.erase(token.find_last_not_of(" \t\r\n") + 1);
  if (token.size() < kShortestToken || token.size() > 4096)
    throw InvalidArgumentError("{} has a token of {} bytes; {} … 4096 are allowed", path, token.size(),
                               kShortestToken);
  return token;
}

}  // namespace

LoadedCredentials load_credentials(const ClusterCredentials& given) {
  const struct {
    const char* variable;
    std::string path;
  } files[] = {{"KOLO_CLUSTER_TLS_CA", path_of(given.tls_ca, "KOLO_CLUSTER_TLS_CA")},
               {"KOLO_CLUSTER_TLS_CERT", path_of(given.tls_cert, "KOLO_CLUSTER_TLS_CERT")},
               {"KOLO_CLUSTER_TLS_KEY", path_of(given.tls_key, "KOLO_CLUSTER_TLS_KEY")}};
  const bool any = !files[0].path.empty() || !files[1].path.empty() || !files[2].path.empty();
  LoadedCredentials loaded;
  if (any) {
    for (const auto& file : files)
      if (file.path.empty())
        throw InvalidArgumentError("TLS needs a CA, a certificate and a key; {} is missing", file.variable);
    loaded.ca = contents(files[0].path);
    loaded.certificate = contents(files[1].path);
    loaded.key = contents(files[2].path);
  }
  const std::string token_file = path_of(given.token_file, "KOLO_CLUSTER_TOKEN_FILE");
  if (!token_file.empty()) loaded.token = token_in(token_file);
  return loaded;
}

bool same_secret(const std::string& a, const std::string& b) {
  // The length of a token is no secret; its bytes are all looked at.
  if (a.size() != b.size()) return false;
  unsigned char difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    difference = static_cast<unsigned char>(
        difference | (static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i])));
  return difference == 0;
}

}  // namespace kolo::detail
