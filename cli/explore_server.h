// HTTP for one page: who is let in, what a request may look like, and how it is answered.
#pragma once

#include <memory>
#include <string>

#include "cli/explore_api.h"

namespace attn::cli {

inline constexpr std::size_t kMostBodyBytes = 64 << 10;

/// Answers requests with an ExploreApi's answers. Whatever is wrong with one is answered once, with {"error": "sentence"}, and
/// its connection ends. Requests whose Host is not this server's own name are refused, so that no page of another site
/// gets in by a name of its own that it lets point here (DNS rebinding); so are those that a page of another site sends.
class ExploreServer {
 public:
  /// Takes the port, or with 0 a free one. `api` must outlive this. Throws Failure{2} that names --host or --port.
  ExploreServer(const std::string& host, int port, const ExploreApi& api);
  ~ExploreServer();
  ExploreServer(const ExploreServer&) = delete;
  ExploreServer& operator=(const ExploreServer&) = delete;

  /// "http://127.0.0.1:8080/"
  std::string address() const;

  /// Serves until stop(), which any other thread calls; it may do so again and again until run() has returned.
  void run();
  void stop();

 private:
  class Gate;
  std::unique_ptr<Gate> gate_;
};

}  // namespace attn::cli
