// One client's socket, with an end to everything: to how long its request may take, how large its head may be, and how long
// it may take to hear the answer.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <sys/types.h>

namespace attn::cli {

inline constexpr std::size_t kMostHeadBytes = 8 << 10;

class Connection {
 public:
  /// Takes the socket over. `stopping` ends all waiting once it is true.
  Connection(int socket, const std::atomic<bool>& stopping);

  /// Lets the client read what it was sent, also where it is still sending, and closes.
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  enum class Head : std::uint8_t { whole, none, cut, late, too_long, malformed };

  /// Reads the request line and the headers, up to and including the blank line. none: the client said nothing; malformed:
  /// lines that do not end in CR LF, or control characters.
  Head read_head(std::string* head);

  /// Puts bytes in front of what read() gives next. Once, after read_head().
  void put_back(std::string_view bytes);

  /// Up to `size` bytes; 0 at the end, -1 where the request took too long.
  ssize_t read(char* to, std::size_t size);

  /// All of the bytes, or false.
  bool write(std::string_view bytes);

  /// False once the client has gone, or has said that it sends nothing more: those that wait for an answer do not.
  bool is_open() const;

  int socket() const { return socket_; }

 private:
  using Clock = std::chrono::steady_clock;
  bool wait(short events, Clock::time_point deadline) const;
  ssize_t receive(Clock::time_point deadline, char* to, std::size_t size) const;

  const int socket_;
  const std::atomic<bool>& stopping_;
  const Clock::time_point begun_ = Clock::now();
  std::string ahead_;  // received, and from here on not yet asked for:
  std::size_t ahead_from_ = 0;
};

}  // namespace attn::cli
