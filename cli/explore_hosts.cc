#include "cli/explore_hosts.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace attn::cli {
namespace {

constexpr int kUsualPort = 80;  // left out in a Host header

std::string in_lower_case(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return text;
}

std::string bracketed(const std::string& host) {
  return host.find(':') == std::string::npos ? host : "[" + host + "]";
}

bool is_number(const std::string& host) {
  std::array<unsigned char, 16> address{};
  return ::inet_pton(AF_INET, host.c_str(), address.data()) == 1 ||
         ::inet_pton(AF_INET6, host.c_str(), address.data()) == 1;
}

}  // namespace

std::string host_and_port(const std::string& host, int port) {
  return bracketed(host) + ":" + std::to_string(port);
}

bool is_loopback(const std::string& host) {
  const std::string name = in_lower_case(host);
  return name == "localhost" || name == "::1" || (name.starts_with("127.") && is_number(name));
}

AllowedHosts::AllowedHosts(const std::string& host, int port)
    : port_(port), all_numbers_(host == "0.0.0.0" || host == "::") {
  for (const std::string& name : {host, std::string("localhost"), std::string("127.0.0.1"), std::string("::1")}) {
    names_.insert(in_lower_case(host_and_port(name, port)));
    if (port == kUsualPort) names_.insert(in_lower_case(bracketed(name)));
  }
}

bool AllowedHosts::is_number_here(const std::string& host_header) const {
  std::string_view host = host_header;
  const std::string port = ":" + std::to_string(port_);
  if (host.ends_with(port)) {
    host.remove_suffix(port.size());
  } else if (port_ != kUsualPort) {
    return false;
  }
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  return is_number(std::string(host));
}

bool AllowedHosts::has(const std::string& host_header) const {
  return names_.contains(in_lower_case(host_header)) || (all_numbers_ && is_number_here(host_header));
}

bool AllowedHosts::has_origin(const std::string& origin) const {
  constexpr std::string_view kScheme = "http://";
  return origin.starts_with(kScheme) && has(origin.substr(kScheme.size()));
}

}  // namespace attn::cli
