// attn explore as a process of its own, and raw bytes to and from it.
#pragma once

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/cli_program.h"
#include "tests/small_model.h"

namespace attn::cli {

/// `attn explore ARGUMENTS…` in a folder, until stop() or the end of this object.
class ServedProgram {
 public:
  ServedProgram(const std::filesystem::path& folder, std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {ATTN_PROGRAM, "explore"});
    std::vector<char*> words;
    for (std::string& argument : arguments) words.push_back(argument.data());
    words.push_back(nullptr);
    int out[2];
    if (pipe(out) != 0) std::abort();
    program_ = fork();
    if (program_ == 0) {
      dup2(out[1], STDOUT_FILENO);
      dup2(open((folder / "errors").c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600), STDERR_FILENO);
      close(out[0]);
      if (chdir(folder.c_str()) == 0) execv(words[0], words.data());
      _exit(127);
    }
    close(out[1]);
    char byte = 0;
    while (!said_.ends_with('\n') && read(out[0], &byte, 1) == 1) said_ += byte;
    close(out[0]);
    const std::size_t colon = said_.rfind(':', said_.find("/ ("));
    if (colon != std::string::npos) port_ = std::atoi(said_.c_str() + colon + 1);
  }
  ~ServedProgram() { stop(SIGKILL); }
  ServedProgram(const ServedProgram&) = delete;
  ServedProgram& operator=(const ServedProgram&) = delete;

  const std::string& said() const { return said_; }
  int port() const { return port_; }

  /// The exit code, or 128 + the signal that ended it.
  int stop(int signal) {
    if (program_ <= 0) return -1;
    kill(program_, signal);
    int status = 0;
    waitpid(program_, &status, 0);
    program_ = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

 private:
  pid_t program_ = 0;
  std::string said_;
  int port_ = 0;
};

struct Reply {
  int status = 0;  ///< 0: no whole answer
  std::map<std::string, std::string> headers;
  std::string body;
};

inline Reply parse_reply(const std::string& bytes) {
  Reply reply;
  const std::size_t end = bytes.find("\r\n\r\n");
  if (!bytes.starts_with("HTTP/1.1 ") || end == std::string::npos) return reply;
  for (std::size_t line = bytes.find("\r\n"); line < end;) {
    const std::size_t begin = line + 2, colon = bytes.find(": ", begin);
    line = bytes.find("\r\n", begin);
    reply.headers[bytes.substr(begin, colon - begin)] = bytes.substr(colon + 2, line - colon - 2);
  }
  reply.body = bytes.substr(end + 4);
  if (reply.headers["Content-Length"] == std::to_string(reply.body.size()))
    reply.status = std::atoi(bytes.c_str() + 9);
  return reply;
}

/// A connection to a port of this machine.
class Client {
 public:
  explicit Client(int port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  }
  ~Client() { close(socket_); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  bool connected() const { return connected_; }

  /// As many bytes as the other side takes.
  void send(std::string_view bytes) const {
    while (!bytes.empty()) {
      const ssize_t count = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (count <= 0) return;
      bytes.remove_prefix(static_cast<std::size_t>(count));
    }
  }

  void end() const { shutdown(socket_, SHUT_WR); }

  /// Everything up to the end, which must come within some seconds.
  std::string all() const {
    std::string bytes;
    std::vector<char> piece(1 << 16);
    pollfd one{socket_, POLLIN, 0};
    while (poll(&one, 1, 20'000) > 0) {
      const ssize_t count = recv(socket_, piece.data(), piece.size(), 0);
      if (count <= 0) break;
      bytes.append(piece.data(), static_cast<std::size_t>(count));
    }
    return bytes;
  }

 private:
  int socket_;
  bool connected_ = false;
};

/// Where a page finds what it is given.
inline constexpr const char* kGivenPlace = R"(<script id="given" type="application/json">null</script>)";

/// A folder with a small model and a page to serve, and requests.
class ExploreTest : public CliTest {
 protected:
  ExploreTest() {
    const std::string model = model::small_model({}).finish();
    std::ofstream(path("a<b.gguf"), std::ios::binary) << model;
    std::ofstream(path("page.html")) << "<!doctype html>" << kGivenPlace << "<p>null</p>";
  }

  std::unique_ptr<ServedProgram> serve(std::vector<std::string> more = {"--model", "a<b.gguf"}) const {
    more.insert(more.end(), {"--port", "0", "--page", "page.html"});
    auto program = std::make_unique<ServedProgram>(path(""), more);
    EXPECT_GT(program->port(), 0) << program->said() << contents_of(path("errors"));
    return program;
  }

  static Reply exchange(const ServedProgram& program, const std::string& bytes) {
    const Client client(program.port());
    client.send(bytes);
    client.end();
    return parse_reply(client.all());
  }

  static std::string host(const ServedProgram& program) {
    return "Host: 127.0.0.1:" + std::to_string(program.port()) + "\r\n";
  }

  static Reply get(const ServedProgram& program, const std::string& target) {
    return exchange(program, "GET " + target + " HTTP/1.1\r\n" + host(program) + "\r\n");
  }

  static Reply post(const ServedProgram& program, const std::string& body, const std::string& headers = "") {
    const Client client(program.port());  // without end(): who sends nothing more waits for no map
    client.send("POST /api/map HTTP/1.1\r\n" + host(program) + headers +
                "Content-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
                body);
    return parse_reply(client.all());
  }

  static nlohmann::json map_of(const ServedProgram& program, const std::string& text) {
    const Reply reply = post(program, nlohmann::json{{"text", text}}.dump());
    EXPECT_EQ(reply.status, 200) << reply.body;
    return nlohmann::json::parse(reply.body);
  }

  /// One error, which speaks of `piece`.
  static void expect_refused(const Reply& reply, int status, const std::string& piece) {
    EXPECT_EQ(reply.status, status) << reply.body;
    const auto error = nlohmann::json::parse(reply.body, nullptr, false);
    ASSERT_TRUE(error.is_object() && error.size() == 1 && error.contains("error")) << reply.body;
    EXPECT_NE(error["error"].get<std::string>().find(piece), std::string::npos) << reply.body;
  }
};

}  // namespace attn::cli
