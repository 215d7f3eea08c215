// attn explore: the page, and the maps behind it, over real sockets.
#include <cmath>

#include "explain/attention_map.h"
#include "model/map_text.h"
#include "tests/explore_client.h"

namespace attn::cli {
namespace {

using explain::AttentionMap;
using nlohmann::json;
using Explore = ExploreTest;

TEST_F(Explore, ServesThePageWithWhatItIsGiven) {
  const auto program = serve();
  EXPECT_EQ(program->said(),
            "attn explore: http://127.0.0.1:" + std::to_string(program->port()) + "/ (Ctrl-C ends it)\n");
  const Reply page = get(*program, "/");
  EXPECT_EQ(page.status, 200);
  EXPECT_EQ(page.body, R"(<!doctype html><script id="given" type="application/json">)"
                       R"({"server":{"model":"a\u003cb.gguf, 3 layers of 6 heads"}}</script><p>null</p>)");
  EXPECT_EQ(page.headers.at("Content-Type"), "text/html; charset=utf-8");
  EXPECT_TRUE(
      page.headers.at("Content-Security-Policy").starts_with("default-src 'none'; script-src 'unsafe-inline'"));
  EXPECT_EQ(page.headers.at("X-Content-Type-Options"), "nosniff");
  EXPECT_EQ(page.headers.at("Cache-Control"), "no-store");

  // An answer is one whole, and as it is, whatever a browser would take.
  const Reply asked = exchange(
      *program, "GET / HTTP/1.1\r\n" + host(*program) + "Accept-Encoding: gzip, br\r\nRange: bytes=0-3\r\n\r\n");
  EXPECT_EQ(asked.status, 200);
  EXPECT_EQ(asked.body, page.body);

  // Who works on the page sees what it is now.
  std::ofstream(path("page.html")) << "changed" << kGivenPlace;
  EXPECT_TRUE(get(*program, "/").body.starts_with("changed"));
}

TEST_F(Explore, WithoutAModelThereIsThePageAlone) {
  const auto program = serve({});
  EXPECT_NE(get(*program, "/").body.find(R"({"server":{"model":null}})"), std::string::npos);
  expect_refused(get(*program, "/api/ranking?id=1&from=0"), 404, "start attn explore with --model");
  expect_refused(post(*program, R"({"text": "it"})"), 404, "start attn explore with --model");
}

class ExploredMap : public Explore {
 protected:
  ExploredMap() : program_(serve()) {
    std::unique_ptr<model::TextModel> model;
    EXPECT_EQ(model::load_model(path("a<b.gguf"), inline_executor(), &model).message(), "");
    EXPECT_EQ(model::map_tokens(*model, model->tokenizer().encode(text_), {}, &map_).message(), "");
    told_ = map_of(*program_, text_);
    id_ = "id=" + told_["id"].get<std::string>();
  }

  std::string body(const std::string& path_and_query) const {
    const Reply reply = get(*program_, path_and_query + id_);
    EXPECT_EQ(reply.status, 200) << reply.body;
    return reply.body;
  }

  std::vector<float> floats(const std::string& path_and_query) const {
    const std::string bytes = body(path_and_query);
    std::vector<float> numbers(bytes.size() / sizeof(float));
    std::memcpy(numbers.data(), bytes.data(), bytes.size());
    return numbers;
  }

  const std::string text_ = "the kettle was it and it was the kettle that was \"broken\" <it>";
  const std::unique_ptr<ServedProgram> program_;
  AttentionMap map_;
  json told_;
  std::string id_;
};

TEST_F(ExploredMap, IsToldAsItIs) {
  EXPECT_EQ(told_["model"], "a<b.gguf, 3 layers of 6 heads");
  EXPECT_EQ(told_["tokens"], json(map_.tokens));
  EXPECT_EQ(told_["special"], json(map_.special));
  EXPECT_EQ(told_["causal"], true);
  EXPECT_EQ(told_["layers"], 3);
  EXPECT_EQ(told_["heads"], 6);
  EXPECT_EQ(told_["fidelity"], map_.fidelity);
  EXPECT_EQ(told_["rows_judged"], map_.rows_judged);
  EXPECT_EQ(told_["caveat"], explain::kMapCaveat);
}

TEST_F(ExploredMap, GivesWeightsToTheBit) {
  const std::int64_t n = map_.size();
  for (std::int64_t layer = 0; layer < 3; ++layer) {
    for (std::int64_t head = 0; head < 6; ++head) {
      const auto weights =
          floats("/api/weights?layer=" + std::to_string(layer) + "&head=" + std::to_string(head) + "&");
      const float* expected = map_.row(static_cast<std::size_t>(layer), head, 0).data();
      ASSERT_EQ(weights, std::vector<float>(expected, expected + n * n));
    }
  }
}

TEST_F(ExploredMap, GivesThumbnails) {
  const std::int64_t n = map_.size();
  for (const std::int64_t size : {8, 9, 64}) {
    const std::int64_t cells = std::min<std::int64_t>(size, n);
    const std::string bytes = body("/api/thumbnails?size=" + std::to_string(size) + "&");
    ASSERT_EQ(bytes.size(), static_cast<std::size_t>(18 * cells * cells));
    std::vector<float> largest(bytes.size());
    for (std::int64_t head = 0; head < 18; ++head) {
      for (std::int64_t i = 0; i < n * n; ++i) {
        float& cell =
            largest[static_cast<std::size_t>((head * cells + i / n * cells / n) * cells + i % n * cells / n)];
        cell = std::max(cell, map_.weights[static_cast<std::size_t>(head * n * n + i)]);
      }
    }
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      ASSERT_EQ(static_cast<unsigned char>(bytes[i]), std::lround(255 * std::sqrt(std::min(largest[i], 1.0F))))
          << i;
    }
  }
}

TEST_F(ExploredMap, RanksHeads) {
  const json ranking = json::parse(body("/api/ranking?from=9&"));
  const auto expected = explain::rank_heads(map_, 9);
  ASSERT_EQ(ranking.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(ranking[i], json({{"layer", expected[i].layer},
                                {"head", expected[i].head},
                                {"beyond", expected[i].beyond},
                                {"first", expected[i].first},
                                {"previous", expected[i].previous},
                                {"itself", expected[i].itself}}));
  }
  const json pairs = json::parse(body("/api/pair?from=9&to=4&"));
  ASSERT_EQ(pairs.size(), 18U);
  double last = 1;
  std::set<std::pair<int, int>> heads;
  for (const json& pair : pairs) {
    const double weight = pair["weight"];
    EXPECT_EQ(weight, map_.row(pair["layer"], pair["head"], 9)[4]);
    EXPECT_LE(weight, last);
    last = weight;
    heads.emplace(pair["layer"], pair["head"]);
  }
  EXPECT_EQ(heads.size(), 18U);
}

TEST_F(ExploredMap, TheLastTwoAreKept) {
  const json second = map_of(*program_, "it"), third = map_of(*program_, "was");
  expect_refused(get(*program_, "/api/ranking?from=0&" + id_), 404, "map the text again");
  for (const json& kept : {second, third})
    EXPECT_EQ(get(*program_, "/api/ranking?from=0&id=" + kept["id"].get<std::string>()).status, 200);
  EXPECT_NE(second["id"], third["id"]);
}

TEST_F(ExploredMap, NamesTheParameterThatIsWrong) {
  const auto refused = [&](const std::string& target, const std::string& piece, int status = 400) {
    SCOPED_TRACE(target);
    expect_refused(get(*program_, target + id_), status, piece);
  };
  refused("/api/weights?layer=3&head=0&", "layer: \"3\" is above 2");
  refused("/api/weights?layer=-1&head=0&", "layer: \"-1\" is below 0");
  refused("/api/weights?layer=0&head=6&", "head: \"6\" is above 5");
  refused("/api/weights?layer=0&", "head: not given; /api/weights takes id, layer, head");
  refused("/api/weights?layer=0&head=1&head=2&", "head: given more than once");
  refused("/api/weights?layer=0&head=%FF&", "head: ");
  refused("/api/weights?layer=0&head=99999999999999999999999&", "head: ");
  refused("/api/thumbnails?size=7&", "size: \"7\" is below 8");
  refused("/api/thumbnails?size=65&", "size: \"65\" is above 64");
  refused("/api/thumbnails?size=1e1&", "size: ");
  refused("/api/ranking?from=5000&", "from: \"5000\"");
  refused("/api/pair?from=0&to=nan&", "to: \"nan\"");
  refused("/api/ranking?from=0&colour=red&", "\"colour\" is no parameter here; /api/ranking takes id, from");
  refused("/api/ranking?from=0&id=none&", "id: given more than once");
  expect_refused(get(*program_, "/api/ranking?from=0&id=none"), 404, "id: no map of that name is kept");
}

TEST_F(Explore, RefusesTextsThatMakeNoMap) {
  const auto program = serve();
  const auto refused = [&](const std::string& body, const std::string& piece) {
    SCOPED_TRACE(body.substr(0, 80));
    expect_refused(post(*program, body), 400, piece);
  };
  refused("", "body: not one JSON object");
  refused("{", "body: not one JSON object");
  refused("{\"text\": \"\xFF\"}", "in UTF-8");
  refused(R"({"text": "\ud800"})", "body: ");
  refused(std::string(30'000, '['), "body: ");
  refused("[]", "body: JSON, but no object");
  refused("{}", "text: not given");
  refused(R"({"text": 1})", "text: not a text");
  refused(R"({"text": "it", "model": "x"})", "\"model\" is no key");
  refused(R"({"text": ""})", "text: it is empty");
  refused(json{{"text", std::string(20'001, 'a')}}.dump(), "text: 20001 bytes");
  refused(json{{"text", std::string(2'000, 'z')}}.dump(), "tokens, but a map here has at most 1500");
  refused(json{{"text", std::string(700, 'z')}}.dump(), "but the model has 512 positions");
  EXPECT_EQ(post(*program, json{{"text", std::string("it\0was\n", 7)}}.dump()).status, 200);
}

TEST_F(Explore, RefusesWrongUse) {
  const auto program = serve();
  const auto refused = [&](std::vector<std::string> arguments, const std::string& piece) {
    arguments.insert(arguments.begin(), "explore");
    const Outcome outcome = attn(arguments);
    EXPECT_EQ(outcome.exit_code, 2);
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    EXPECT_NE(outcome.err.find(piece), std::string::npos) << outcome.err;
  };
  const std::string port = std::to_string(program->port());
  refused({"--page", "page.html", "--port", port},
          "--port: 127.0.0.1:" + port + " can't be had: Address already in use; give another, or 0");
  refused({"--page", "page.html", "--port", "65536"}, "--port: \"65536\" is above 65535");
  refused({"--page", "page.html", "--port", "http"}, "--port: \"http\"");
  refused({"--page", "page.html", "--port", "0", "--host", "no such host"},
          "--host: \"no such host\" is no address");
  refused({"--page", "page.html", "--port", "0", "--host", "192.0.2.1"}, "--host: 192.0.2.1:0 can't be had");
  refused({"--page", "page.html", "--model", "none.gguf"}, "--model: there is no file or folder \"none.gguf\"");
  refused({"--page", "none.html"}, "--page: none.html: there is no such file");
  refused({"--page", "a<b.gguf"}, "page: it does not have <script id=\"given\"");
  std::ofstream(path("twice.html")) << kGivenPlace << kGivenPlace;
  refused({"--page", "twice.html"}, "exactly once");
  if (!ATTN_HAS_PAGE) refused({}, "attn explore: this build has no page; ./run explore builds it");
}

}  // namespace
}  // namespace attn::cli
