// The only file that sees cpp-httplib. It parses requests and writes answers; what it would read without end, unpack or
// guess is kept from it here.
#include "cli/explore_server.h"

#include <httplib.h>
#include <strings.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <exception>
#include <new>
#include <optional>
#include <string_view>

#include "cli/explore_connection.h"
#include "cli/explore_hosts.h"
#include "cli/explore_maps.h"
#include "cli/verbs.h"

namespace attn::cli {
namespace {

constexpr std::size_t kThreads = 4;
constexpr int kQueue = 128;  // of connections that wait for one of them

const httplib::Headers& safe_headers() {
  static const httplib::Headers all = {
      {"Content-Security-Policy",
       "default-src 'none'; script-src 'unsafe-inline' 'wasm-unsafe-eval' 'self'; style-src 'unsafe-inline'; "
       "img-src data: blob: 'self'; font-src data:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
       "frame-ancestors 'none'"},
      {"X-Content-Type-Options", "nosniff"},
      {"Cross-Origin-Resource-Policy", "same-origin"},
      {"Referrer-Policy", "no-referrer"},
      {"Cache-Control", "no-store"}};
  return all;
}

// What cpp-httplib reads and writes through.
class Wire final : public httplib::Stream {
 public:
  explicit Wire(Connection& connection) : connection_(connection) {}
  bool is_readable() const override { return true; }
  bool is_writable() const override { return true; }
  ssize_t read(char* to, std::size_t size) override { return connection_.read(to, size); }
  ssize_t write(const char* from, std::size_t size) override {
    return connection_.write({from, size}) ? static_cast<ssize_t>(size) : -1;
  }
  void get_remote_ip_and_port(std::string& /*ip*/, int& /*port*/) const override {}
  void get_local_ip_and_port(std::string& /*ip*/, int& /*port*/) const override {}
  socket_t socket() const override { return connection_.socket(); }

 private:
  Connection& connection_;
};

std::optional<Refusal> refusal_of(Connection::Head head) {
  switch (head) {
    case Connection::Head::whole:
    case Connection::Head::none: return std::nullopt;
    case Connection::Head::cut: return Refusal{400, "request: it ends before the blank line that ends its headers"};
    case Connection::Head::late:
      return Refusal{400, "request: its headers took too long to arrive; send them at once"};
    case Connection::Head::too_long:
      return Refusal{
          413, "request: its headers take more than " + std::to_string(kMostHeadBytes) + " bytes; send fewer"};
    case Connection::Head::malformed:
      return Refusal{400, "request: not HTTP/1.1: its lines end in CR LF and have no control characters"};
  }
  return std::nullopt;
}

// Headers that may be passed over, and here would only do harm: an answer in parts or packed is more work than it saves, and
// "100 Continue" is no answer.
bool is_passed_over(std::string_view line) {
  for (const std::string_view name : {"range:", "accept-encoding:", "expect:"}) {
    if (line.size() >= name.size() && ::strncasecmp(line.data(), name.data(), name.size()) == 0) return true;
  }
  return false;
}

std::string without_what_is_passed_over(const std::string& head) {
  std::string rest;
  for (std::size_t begin = 0; begin < head.size();) {
    const std::size_t end = head.find('\n', begin) + 1;
    const std::string_view line = std::string_view(head).substr(begin, end - begin);
    if (!is_passed_over(line)) rest += line;
    begin = end;
  }
  return rest;
}

// Nothing about a body is left to be guessed.
void check_body(const httplib::Request& request) {
  for (const char* name : {"Transfer-Encoding", "Content-Encoding"}) {
    if (request.has_header(name))
      throw Refusal{400, std::string(name) + ": not understood here; send the body as it is, with Content-Length"};
  }
  const std::string length = request.get_header_value("Content-Length");
  if (request.get_header_value_count("Content-Length") != 1 || length.empty() || length.size() > 18 ||
      length.find_first_not_of("0123456789") != std::string::npos) {
    throw Refusal{400, "Content-Length: not given as one whole number; say how many bytes the body has"};
  }
  if (std::stoull(length) > kMostBodyBytes) {
    throw Refusal{413, "body: " + length + " bytes, but at most " + std::to_string(kMostBodyBytes) +
                           " are read; send a shorter text"};
  }
  const std::string type = request.get_header_value("Content-Type");
  if (type.substr(0, type.find(';')) != "application/json")
    throw Refusal{400, "Content-Type: \"" + type + "\", but a body here is application/json"};
}

// Why a request is not answered, as far as its headers tell.
void check(const httplib::Request& request, const AllowedHosts& hosts) {
  if (request.get_header_value_count("Host") != 1 || !hosts.has(request.get_header_value("Host"))) {
    throw Refusal{403, "Host: \"" + request.get_header_value("Host") +
                           "\" is no name of this server; open the address that attn explore prints"};
  }
  if (request.has_header("Origin") && !hosts.has_origin(request.get_header_value("Origin"))) {
    throw Refusal{403, "Origin: \"" + request.get_header_value("Origin") +
                           "\" is another site; only the page of this server may ask it"};
  }
  const std::string_view method = ExploreApi::method_of(request.path);
  if (method.empty()) throw Refusal{404, "path: nothing is at \"" + request.path + "\"; the page is at /"};
  if (request.method != method) {
    throw Refusal{
        405, "method: " + request.method + ", but " + request.path + " takes " + std::string(method) + " alone"};
  }
  if (method == "POST") check_body(request);
}

void refuse(const Refusal& refusal, httplib::Response* response) {
  response->status = refusal.status;
  response->body = error_json(refusal.sentence);
  response->set_header("Content-Type", "application/json");
}

// Turns whatever `act` throws into the one answer that says so.
template <class Act>
void or_refuse(httplib::Response* response, const Act& act) {
  try {
    act();
  } catch (const Refusal& refusal) {
    refuse(refusal, response);
  } catch (const Failure& failure) {
    refuse({400, failure.sentence}, response);
  } catch (const std::bad_alloc&) {
    refuse({500, "memory: not enough for this; give a shorter text"}, response);
  } catch (const std::exception& error) {
    refuse({500, std::string("program: ") + error.what()}, response);
  }
}

// What cpp-httplib refuses by itself, and why it does.
void explain_refusal(const httplib::Request& request, httplib::Response* response) {
  if (!response->body.empty()) return;
  if (!request.headers.contains("Host"))
    return refuse({400, "request: not HTTP/1.1: a method, a path and the version come first, then headers"},
                  response);
  refuse({400, "body: it ends before all of its bytes have come; send as many as Content-Length says"}, response);
}

// An answer without cpp-httplib, for what does not get as far as it.
std::string raw_answer(const Refusal& refusal) {
  const std::string body = error_json(refusal.sentence);
  std::string text = refusal.status == 413 ? "HTTP/1.1 413 Payload Too Large\r\n" : "HTTP/1.1 400 Bad Request\r\n";
  for (const auto& [name, value] : safe_headers()) text += name + ": " + value + "\r\n";
  return text +
         "Connection: close\r\nContent-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) +
         "\r\n\r\n" + body;
}

// Our own instead of cpp-httplib's, which would let two servers share a port. Connections are accepted once they say
// something: those that browsers open in advance would keep our few threads waiting.
void set_options(socket_t socket) {
  const int on = 1, seconds = 5;
  ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  ::setsockopt(socket, IPPROTO_TCP, TCP_DEFER_ACCEPT, &seconds, sizeof seconds);
}

void check_host(const std::string& host) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  const int error = ::getaddrinfo(host.c_str(), nullptr, &hints, &found);
  if (error == 0) return ::freeaddrinfo(found);
  throw Failure{2, "--host: \"" + host + "\" is no address (" + ::gai_strerror(error) +
                       "); give one of this machine's, such as 127.0.0.1"};
}

}  // namespace

class ExploreServer::Gate final : public httplib::Server {
 public:
  Gate(const std::string& host, int port, const ExploreApi& api)
      : api_(api), host_(host), port_(take_port(host, port)), hosts_(host, port_) {
    new_task_queue = [] { return new httplib::ThreadPool(kThreads); };
    set_default_headers(safe_headers());
    set_pre_routing_handler([this](const httplib::Request& request, httplib::Response& response) {
      or_refuse(&response, [&] {
        check(request, hosts_);
        if (request.method == "GET") answer(request, &response);
      });
      if (response.status == 405) response.set_header("Allow", std::string(ExploreApi::method_of(request.path)));
      // A body is read where nothing has been answered yet.
      return response.status == -1 ? HandlerResponse::Unhandled : HandlerResponse::Handled;
    });
    Post(".*", [this](const httplib::Request& request, httplib::Response& response) {
      or_refuse(&response, [&] { answer(request, &response); });
    });
    set_error_handler(httplib::Server::Handler(
        [](const httplib::Request& request, httplib::Response& response) { explain_refusal(request, &response); }));
  }

  std::string address() const { return "http://" + host_and_port(host_, port_) + "/"; }

  void end() {
    stopping_ = true;
    if (is_running() && svr_sock_ != INVALID_SOCKET) stop();
  }

 private:
  int take_port(const std::string& host, int port) {
    check_host(host);
    set_socket_options(set_options);
    errno = 0;
    const int taken = port == 0 ? bind_to_any_port(host) : bind_to_port(host, port) ? port : -1;
    // Longer than cpp-httplib's queue, in which connections that say nothing wait.
    if (taken > 0 && ::listen(svr_sock_, kQueue) == 0) return taken;
    const std::string place = host_and_port(host, port) + " can't be had: " + std::strerror(errno);
    if (errno == EADDRNOTAVAIL)
      throw Failure{2, "--host: " + place + "; give an address of this machine, such as 127.0.0.1"};
    throw Failure{2, "--port: " + place + "; give another, or 0 for any that is free"};
  }

  void answer(const httplib::Request& request, httplib::Response* response) const {
    ApiAnswer answer =
        api_.answer({request.path, request.params, request.body, [asking = asking_] { return asking->is_open(); }});
    response->status = 200;
    response->body = std::move(answer.body);
    response->set_header("Content-Type", answer.type);
  }

  // One request a connection: it is over before another could hide in what is left of this one.
  bool process_and_close_socket(socket_t socket) override {
    Connection connection(socket, stopping_);
    asking_ = &connection;
    try {
      std::string head;
      const Connection::Head read = connection.read_head(&head);
      if (read == Connection::Head::none) return false;
      if (const auto refusal = refusal_of(read)) return connection.write(raw_answer(*refusal));
      connection.put_back(without_what_is_passed_over(head));
      Wire wire(connection);
      bool is_closed = false;
      return process_request(wire, true, is_closed, nullptr);
    } catch (const std::exception&) {
      return false;  // of memory: all else is answered
    }
  }

  // Whose request this thread is at: cpp-httplib does not tell its handlers.
  static thread_local const Connection* asking_;

  const ExploreApi& api_;
  const std::string host_;
  const int port_;
  const AllowedHosts hosts_;
  std::atomic<bool> stopping_ = false;
};

thread_local const Connection* ExploreServer::Gate::asking_ = nullptr;

ExploreServer::ExploreServer(const std::string& host, int port, const ExploreApi& api)
    : gate_(std::make_unique<Gate>(host, port, api)) {}
ExploreServer::~ExploreServer() = default;
std::string ExploreServer::address() const { return gate_->address(); }
void ExploreServer::run() {
  if (!gate_->listen_after_bind()) throw Failure{2, "--port: the system took it away; start attn explore again"};
}
void ExploreServer::stop() { gate_->end(); }

}  // namespace attn::cli
