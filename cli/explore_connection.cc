#include "cli/explore_connection.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace attn::cli {
namespace {

using namespace std::chrono_literals;

constexpr auto kFirstTime = 1s;        // for a request to begin: browsers also open sockets that they may never use
constexpr auto kRequestTime = 5s;      // for a whole request to arrive
constexpr auto kWriteTime = 5s;        // for some more of the answer to be taken
constexpr auto kAnswerTime = 60s;      // for all of it
constexpr auto kFarewellTime = 500ms;  // for the client to close
constexpr auto kGlance = 50ms;         // how often a wait looks whether the program ends
constexpr std::size_t kMostFarewellBytes = 1 << 20;
constexpr std::string_view kEnd = "\r\n\r\n";

// Lines end in CR LF, and nothing else below a blank but tabs stands in them.
bool is_well_formed(std::string_view head) {
  for (std::size_t i = 0; i < head.size(); ++i) {
    const auto byte = static_cast<unsigned char>(head[i]);
    if (byte == '\n' && (i == 0 || head[i - 1] != '\r')) return false;
    if (byte == '\r' && i + 1 < head.size() && head[i + 1] != '\n') return false;
    if ((byte < 0x20 && byte != '\r' && byte != '\n' && byte != '\t') || byte == 0x7F) return false;
  }
  return true;
}

}  // namespace

Connection::Connection(int socket, const std::atomic<bool>& stopping) : socket_(socket), stopping_(stopping) {}

// To close with bytes unread would reset the connection, and the client might never see why it was refused.
Connection::~Connection() {
  ::shutdown(socket_, SHUT_WR);
  const auto deadline = Clock::now() + kFarewellTime;
  std::array<char, 4096> unread{};
  for (std::size_t bytes = 0; bytes < kMostFarewellBytes; bytes += unread.size()) {
    if (receive(deadline, unread.data(), unread.size()) <= 0) break;
  }
  ::close(socket_);
}

bool Connection::wait(short events, Clock::time_point deadline) const {
  while (!stopping_) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
    if (left <= 0ms) return false;
    pollfd one{socket_, events, 0};
    const int ready = ::poll(&one, 1, static_cast<int>(std::min(left, std::chrono::milliseconds(kGlance)).count()));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return false;
  }
  return false;
}

ssize_t Connection::receive(Clock::time_point deadline, char* to, std::size_t size) const {
  while (wait(POLLIN, deadline)) {
    const ssize_t count = ::recv(socket_, to, size, MSG_DONTWAIT);
    if (count >= 0) return count;
    if (errno != EINTR && errno != EAGAIN) return -1;
  }
  return -1;
}

Connection::Head Connection::read_head(std::string* head) {
  std::array<char, 4096> piece{};
  std::string read;
  for (;;) {
    const std::size_t end = read.find(kEnd), size = end == std::string::npos ? read.size() : end + kEnd.size();
    if (!is_well_formed(std::string_view(read).substr(0, size))) return Head::malformed;
    if (size > kMostHeadBytes) return Head::too_long;
    if (end != std::string::npos) {
      ahead_ = read.substr(size);
      read.resize(size);
      *head = std::move(read);
      return Head::whole;
    }
    const Clock::time_point deadline = begun_ + (read.empty() ? kFirstTime : kRequestTime);
    const ssize_t count = receive(deadline, piece.data(), piece.size());
    if (count == 0) return read.empty() ? Head::none : Head::cut;
    if (count < 0) return read.empty() ? Head::none : Head::late;
    read.append(piece.data(), static_cast<std::size_t>(count));
  }
}

void Connection::put_back(std::string_view bytes) { ahead_.insert(0, bytes); }

ssize_t Connection::read(char* to, std::size_t size) {
  if (ahead_from_ == ahead_.size()) return receive(begun_ + kRequestTime, to, size);
  const std::size_t count = ahead_.copy(to, size, ahead_from_);
  ahead_from_ += count;
  return static_cast<ssize_t>(count);
}

bool Connection::is_open() const {
  char next = 0;
  const ssize_t count = ::recv(socket_, &next, 1, MSG_PEEK | MSG_DONTWAIT);
  return count > 0 || (count < 0 && (errno == EAGAIN || errno == EINTR));
}

bool Connection::write(std::string_view bytes) {
  const auto last = Clock::now() + kAnswerTime;
  while (!bytes.empty()) {
    if (!wait(POLLOUT, std::min(last, Clock::now() + kWriteTime))) return false;
    const ssize_t count = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count < 0 && errno != EINTR && errno != EAGAIN) return false;
    if (count > 0) bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

}  // namespace attn::cli
