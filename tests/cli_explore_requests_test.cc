// attn explore, and everything that is no proper request: other sites, broken bytes, clients that dawdle or go.
#include <chrono>
#include <random>

#include "tests/explore_client.h"

namespace attn::cli {
namespace {

using nlohmann::json;
using ExploreRequests = ExploreTest;

TEST_F(ExploreRequests, LetsNoOtherSiteIn) {
  const auto program = serve();
  const std::string port = ":" + std::to_string(program->port());
  const auto status = [&](const std::string& headers) {
    return exchange(*program, "GET / HTTP/1.1\r\n" + headers + "\r\n").status;
  };
  for (const std::string name : {"localhost", "LocalHost", "127.0.0.1", "[::1]"})
    EXPECT_EQ(status("Host: " + name + port + "\r\n"), 200) << name;
  for (const std::string& name :
       std::vector<std::string>{"localhost", "127.0.0.1:1", "evil.example" + port, "127.0.0.1.evil.example" + port,
                                "127.0.0.1" + port + "0", "0.0.0.0" + port, "10.0.0.1" + port, ""})
    EXPECT_EQ(status("Host: " + name + "\r\n"), 403) << name;
  EXPECT_EQ(status(""), 403);
  EXPECT_EQ(status(host(*program) + "Host: evil.example\r\n"), 403);
  expect_refused(exchange(*program, "GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n"), 403, "Host: \"evil.example\"");

  const std::string text = R"({"text": "it"})";
  EXPECT_EQ(post(*program, text, "Origin: http://localhost" + port + "\r\n").status, 200);
  for (const std::string origin : {"http://evil.example", "null", "https://localhost"})
    expect_refused(post(*program, text, "Origin: " + origin + "\r\n"), 403, "Origin: \"" + origin);
}

TEST_F(ExploreRequests, WarnsWhereOtherMachinesGetIn) {
  const auto program = serve({"--host", "0.0.0.0"});
  const std::string port = ":" + std::to_string(program->port());
  EXPECT_EQ(program->said(), "attn explore: http://0.0.0.0" + port + "/ (Ctrl-C ends it)\n");
  EXPECT_NE(contents_of(path("errors")).find("--host 0.0.0.0 lets other machines in"), std::string::npos);
  const auto status = [&](const std::string& name) {
    return exchange(*program, "GET / HTTP/1.1\r\nHost: " + name + "\r\n\r\n").status;
  };
  for (const std::string name : {"0.0.0.0", "192.168.1.5", "[fe80::1]", "localhost"})
    EXPECT_EQ(status(name + port), 200);
  for (const std::string name : {"evil.example", "192.168.1", "1.2.3.4.evil.example"})
    EXPECT_EQ(status(name + port), 403);
  EXPECT_EQ(status("192.168.1.5"), 403);
}

TEST_F(ExploreRequests, SaysWhatIsWrongWithARequest) {
  const auto program = serve();
  const auto refused = [&](const std::string& first, const std::string& rest, int status,
                           const std::string& piece) {
    SCOPED_TRACE(first.substr(0, 80) + rest.substr(0, 80));
    expect_refused(exchange(*program, first + "\r\n" + host(*program) + rest), status, piece);
  };
  const std::string to_map = "POST /api/map HTTP/1.1", as_json = "Content-Type: application/json\r\n";
  refused("GET /nothing HTTP/1.1", "\r\n", 404, "nothing is at \"/nothing\"");
  refused("GET /../etc/passwd HTTP/1.1", "\r\n", 404, "nothing is at");
  refused("GET //api/map HTTP/1.1", "\r\n", 404, "nothing is at");
  refused("GET http://127.0.0.1/ HTTP/1.1", "\r\n", 404, "nothing is at");
  refused("GET /api/map HTTP/1.1", "\r\n", 405, "/api/map takes POST alone");
  for (const std::string method : {"POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT"})
    refused(method + " / HTTP/1.1", "Content-Length: 3\r\n\r\nabc", 405, "takes GET alone");
  EXPECT_EQ(exchange(*program, "PUT / HTTP/1.1\r\n" + host(*program) + "\r\n").headers["Allow"], "GET");
  refused("BREW / HTTP/1.1", "\r\n", 400, "request: not HTTP/1.1");
  refused("GET / HTTP/2.0", "\r\n", 400, "request: not HTTP/1.1");
  refused("GET /", "\r\n", 400, "request: not HTTP/1.1");
  refused("GET / HTTP/1.1", "X: 1", 400, "ends before the blank line");
  refused("GET / HTTP/1.1", "X: a\nb\r\n\r\n", 400, "end in CR LF");
  refused("GET / HTTP/1.1", std::string("X: \0\r\n\r\n", 8), 400, "no control characters");
  refused("GET / HTTP/1.1", "X: " + std::string(9'000, 'x') + "\r\n\r\n", 413, "more than 8192 bytes");
  refused("GET /" + std::string(100'000, 'x') + " HTTP/1.1", "\r\n", 413, "more than 8192 bytes");
  refused(to_map, as_json + "\r\n", 400, "Content-Length: not given");
  refused(to_map, as_json + "Content-Length: -1\r\n\r\n", 400, "Content-Length: ");
  refused(to_map, as_json + "Content-Length: 2x\r\n\r\n{}", 400, "Content-Length: ");
  refused(to_map, as_json + "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}", 400, "Content-Length: ");
  refused(to_map, as_json + "Content-Length: 99999999999999999999\r\n\r\n", 400, "Content-Length: ");
  refused(to_map, as_json + "Content-Length: 999999999999999999\r\n\r\n{}", 413, "at most 65536");
  refused(to_map, as_json + "Content-Length: 65537\r\n\r\n" + std::string(65'537, ' '), 413, "at most 65536");
  refused(to_map, as_json + "Content-Length: 20\r\n\r\n{}", 400, "body: it ends before");
  refused(to_map, as_json + "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", 400, "Transfer-Encoding: ");
  refused(to_map, as_json + "Content-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}", 400, "Content-Encoding: ");
  refused(to_map, "Content-Type: multipart/form-data; boundary=a\r\nContent-Length: 2\r\n\r\n{}", 400,
          "a body here is application/json");
  EXPECT_EQ(get(*program, "/").status, 200);
}

// Bytes of any kind, whole requests with bytes changed, cut or put in twice, and clients that go at any moment.
TEST_F(ExploreRequests, OutlivesWhatIsNoRequest) {
  const auto program = serve();
  std::mt19937 random(20'240);
  const auto below = [&](std::size_t end) {
    return std::uniform_int_distribution<std::size_t>(0, end - 1)(random);
  };
  const std::vector<std::string> whole = {
      "GET / HTTP/1.1\r\n" + host(*program) + "\r\n",
      "GET /api/ranking?id=1&from=0 HTTP/1.1\r\n" + host(*program) + "\r\n",
      "POST /api/map HTTP/1.1\r\n" + host(*program) +
          "Content-Type: application/json\r\nContent-Length: 14\r\n\r\n{\"text\": \"it\"}"};
  for (int i = 0; i < 400; ++i) {
    std::string bytes = whole[below(whole.size())];
    if (i % 4 == 0) bytes.assign(1 + below(3'000), ' ');
    for (std::size_t changes = i % 4 == 0 ? bytes.size() : below(4); changes > 0; --changes)
      bytes[below(bytes.size())] = static_cast<char>(below(256));
    if (i % 4 == 1) bytes.resize(below(bytes.size()));
    if (i % 4 == 2) bytes.insert(below(bytes.size()), bytes.substr(below(bytes.size())));
    const Client client(program->port());
    ASSERT_TRUE(client.connected());
    client.send(bytes);
    if (i % 5 == 0) continue;  // and goes
    client.end();
    const std::string answer = client.all();
    if (answer.empty()) continue;  // to nothing, or to a client that was gone
    const Reply reply = parse_reply(answer);
    EXPECT_TRUE(reply.status == 200 || (reply.status >= 400 && reply.status <= 413) || reply.status == 503)
        << answer;
    if (reply.status != 200) expect_refused(reply, reply.status, " ");
  }
  EXPECT_EQ(get(*program, "/").status, 200);
  EXPECT_EQ(program->stop(SIGTERM), 0);
}

TEST_F(ExploreRequests, WaitsForNobodyForLong) {
  const auto program = serve();
  std::vector<std::unique_ptr<Client>> slow, silent;
  for (int i = 0; i < 12; ++i) silent.push_back(std::make_unique<Client>(program->port()));
  for (const char* begun : {"GET / HTTP/1.1\r\n", "POST /api/map HTTP/1.1\r\nContent-", "G"}) {
    slow.push_back(std::make_unique<Client>(program->port()));
    slow.back()->send(begun);
  }
  const auto begun = std::chrono::steady_clock::now();
  EXPECT_EQ(get(*program, "/").status, 200);
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(2));
  for (const auto& client : slow) expect_refused(parse_reply(client->all()), 400, "took too long to arrive");
}

TEST_F(ExploreRequests, EndsAtOnce) {
  using std::chrono::steady_clock;
  for (const int signal : {SIGINT, SIGTERM}) {
    const auto program = serve();
    const Client slow(program->port()), mapping(program->port());
    slow.send("GET / HTTP");
    const std::string body = json{{"text", std::string(450, 'z')}}.dump();
    mapping.send("POST /api/map HTTP/1.1\r\n" + host(*program) +
                 "Content-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
                 body);
    const auto begun = steady_clock::now();
    EXPECT_EQ(program->stop(signal), 0);
    EXPECT_LT(steady_clock::now() - begun, std::chrono::seconds(4));
  }
}

}  // namespace
}  // namespace attn::cli
