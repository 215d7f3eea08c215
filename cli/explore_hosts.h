// By which names a server may be spoken to.
#pragma once

#include <set>
#include <string>

namespace attn::cli {

/// "127.0.0.1:8080", "[::1]:8080"
std::string host_and_port(const std::string& host, int port);

/// The machine itself alone reaches such a host.
bool is_loopback(const std::string& host);

class AllowedHosts {
 public:
  /// Those of a server at host and port: the host as it was given, and the names that every machine has for itself. Where
  /// it listens on all addresses, 0.0.0.0 or ::, other machines may use any of them, as numbers: these are no names that
  /// somebody could let point elsewhere.
  AllowedHosts(const std::string& host, int port);

  /// The value of a request's Host header.
  bool has(const std::string& host_header) const;

  /// The value of an Origin header: a page of this server's.
  bool has_origin(const std::string& origin) const;

 private:
  bool is_number_here(const std::string& host_header) const;

  std::set<std::string> names_;
  int port_;
  bool all_numbers_;
};

}  // namespace attn::cli
