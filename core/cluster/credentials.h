// What the tasks and clients of a cluster show one another before they speak.
#pragma once

#include <string>

namespace kolo {

/// Paths of files; what is left empty comes from the environment. Nothing in either: no TLS, no token.
struct ClusterCredentials {
  /// PEM, all three or none: KOLO_CLUSTER_TLS_CA, KOLO_CLUSTER_TLS_CERT, KOLO_CLUSTER_TLS_KEY. TLS of version
  /// 1.2 or newer, with certificates of that CA on both sides; the caller checks that the server's names the
  /// host that it called.
  std::string tls_ca = {};
  std::string tls_cert = {};
  std::string tls_key = {};
  /// KOLO_CLUSTER_TOKEN_FILE: a secret that each call shows; at least 16 bytes, white space at its end aside.
  /// Without TLS it keeps out strays, not eavesdroppers.
  std::string token_file = {};
};

namespace detail {

/// The files' contents. "" where there is none.
struct LoadedCredentials {
  std::string ca;
  std::string certificate;
  std::string key;
  std::string token;
  bool tls() const { return !ca.empty(); }
  bool any() const { return tls() || !token.empty(); }
};

/// Throws InvalidArgumentError naming the one that is missing of the three TLS files, or for a token that is
/// too short; NotFoundError for a file that cannot be read; FailedPreconditionError `<f> can be read by
/// others; chmod 600` for the file of a token.
LoadedCredentials load_credentials(const ClusterCredentials& given);

/// In a time that does not depend on where they differ.
bool same_secret(const std::string& a, const std::string& b);

}  // namespace detail
}  // namespace kolo
