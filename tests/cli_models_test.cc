// attn generate and attn map, as users run them.
#include <nlohmann/json.hpp>

#include "cli_program.h"
#include "small_encoder.h"
#include "small_model.h"

namespace attn::cli {
namespace {

using nlohmann::json;

class Models : public CliTest {
 protected:
  Models() {
    put("small.gguf", model::small_model({}).finish());
    model::SmallEncoder({"the", "kettle", "it", "was", "."}, 1).write(path("encoder").string());
  }

  void put(const std::string& name, const std::string& bytes) const {
    std::ofstream(path(name), std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }

  // The verb with a model; what follows is appended.
  Outcome with(std::vector<std::string> arguments, const std::vector<std::string>& more = {}) const {
    arguments.insert(arguments.end(), more.begin(), more.end());
    return attn(arguments);
  }

  json json_of(const Outcome& outcome) const {
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return json::parse(outcome.out);
  }

  void expect_refused(const std::vector<std::string>& arguments, const std::string& piece) const {
    const auto before = files();
    const Outcome outcome = attn(arguments);
    EXPECT_EQ(outcome.exit_code, 2) << piece;
    EXPECT_EQ(outcome.out, "");
    EXPECT_NE(outcome.err.find(piece), std::string::npos) << outcome.err;
    EXPECT_EQ(outcome.err.find('\n'), outcome.err.size() - 1) << outcome.err;
    EXPECT_EQ(files(), before);
  }
};

TEST_F(Models, GenerateGivesTheSameTextHoweverItIsComputed) {
  const std::vector<std::string> generate{"generate", "--model", "small.gguf", "it was", "-n", "40", "--json"};
  const json expected = json_of(with(generate));
  EXPECT_EQ(expected["prompt_tokens"], 3);
  EXPECT_EQ(expected["tokens"], expected["token_ids"].size());
  EXPECT_TRUE(expected["text"].get<std::string>().starts_with("it was"));
  EXPECT_GT(expected["prefill_tokens_per_s"], 0);
  EXPECT_GT(expected["cache_bytes"], 0);
  EXPECT_EQ(expected["cache_type"], "f32");
  for (const std::vector<std::string>& more : std::vector<std::vector<std::string>>{
           {"--no-cache"}, {"--chunk", "1"}, {"--chunk", "2"}, {"--threads", "1"}, {"--threads", "2"}}) {
    const json other = json_of(with(generate, more));
    EXPECT_EQ(other["token_ids"], expected["token_ids"]) << more.front();
    EXPECT_EQ(other["cache_bytes"] == 0, more.front() == "--no-cache");
  }
  for (const char* type : {"bf16", "f16", "q8"})
    EXPECT_EQ(json_of(with(generate, {"--cache-type", type}))["cache_type"], type);
}

TEST_F(Models, GeneratePrintsTextAlone) {
  const std::vector<std::string> generate{"generate", "--model", "small.gguf", "-n", "10"};
  const Outcome plain = with(generate), empty = with(generate, {""});
  EXPECT_EQ(plain.exit_code, 0) << plain.err;
  EXPECT_EQ(plain.out, empty.out);
  EXPECT_TRUE(plain.out.ends_with('\n'));
  EXPECT_NE(plain.err.find("tokens/s"), std::string::npos);
  EXPECT_NE(plain.err.find("cache"), std::string::npos);
}

TEST_F(Models, GenerateDrawsTheSameFromTheSameSeed) {
  const std::vector<std::string> drawn{"generate", "--model", "small.gguf", "it", "--temperature", "2", "--json"};
  const json a = json_of(with(drawn, {"--seed", "1"})), b = json_of(with(drawn, {"--seed", "1"})),
             c = json_of(with(drawn, {"--seed", "2"}));
  EXPECT_EQ(a["token_ids"], b["token_ids"]);
  EXPECT_NE(a["token_ids"], c["token_ids"]);
}

TEST_F(Models, GenerateRefusesWhatMakesNoSense) {
  const std::vector<std::string> base{"generate", "--model", "small.gguf", "it"};
  const auto refused = [&](const std::vector<std::string>& more, const std::string& piece) {
    std::vector<std::string> arguments = base;
    arguments.insert(arguments.end(), more.begin(), more.end());
    expect_refused(arguments, piece);
  };
  refused({"--temperature", "-1"}, "--temperature: -1 is below 0");
  refused({"--seed", "3"}, "--seed: nothing is drawn at temperature 0");
  refused({"--no-cache", "--cache-type", "f16"}, "--cache-type: there is no cache with --no-cache");
  refused({"--no-cache", "--chunk", "8"}, "--chunk: with --no-cache");
  refused({"--cache-type", "q4"}, "--cache-type: \"q4\" is none");
  refused({"-n", "511"}, "beyond the 512 positions");
  refused({"-n", "-3"}, "-n: \"-3\"");
  expect_refused({"generate", "it"}, "--model: not given");
  expect_refused({"generate", "--model", "none.gguf", "it"}, "--model: there is no file or folder \"none.gguf\"");
  expect_refused({"generate", "--model", "encoder", "it"}, "encoder");
  put("noise.gguf", "not a model at all");
  expect_refused({"generate", "--model", "noise.gguf", "it"}, "noise.gguf");
}

TEST_F(Models, NamesSayHowToGetThem) {
  ASSERT_EQ(setenv("XDG_CACHE_HOME", path("cache").c_str(), 1), 0);
  expect_refused({"generate", "--model", "smollm2", "it"},
                 "--model: smollm2 is not here yet; run scripts/get-model smollm2");
  expect_refused({"map", "--model", "minilm", "it"}, "run scripts/get-model minilm");
  std::filesystem::create_directories(path("cache/attn/models/smollm2"));
  std::filesystem::copy(path("small.gguf"), path("cache/attn/models/smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"));
  EXPECT_EQ(attn({"generate", "--model", "smollm2", "it", "-n", "3"}).exit_code, 0);
  ASSERT_EQ(unsetenv("XDG_CACHE_HOME"), 0);
}

TEST_F(Models, MapRanksHeadsFromAToken) {
  const json map = json_of(attn({"map", "--model", "small.gguf", "--from", "it", "the was it was", "--json"}));
  EXPECT_EQ(map["tokens"].size(), 5U);
  EXPECT_EQ(map["from"]["position"], 3);
  EXPECT_EQ(map["ranking"].size(), 18U);
  EXPECT_LT(map["fidelity"], 1e-5);
  double last = 1;
  for (const json& head : map["ranking"]) {
    EXPECT_LE(head["beyond"], last);
    last = head["beyond"];
    ASSERT_EQ(head["weights"].size(), 4U);
    double sum = 0;
    for (const json& link : head["weights"]) sum += link["weight"].get<double>();
    EXPECT_NEAR(sum, 1, 1e-5);
  }
  EXPECT_FALSE(map.contains("embedding"));
}

TEST_F(Models, MapSaysWhatItShowsAndWhatNot) {
  const Outcome told = attn({"map", "--model", "small.gguf", "--from", "it", "the was it was", "--top", "3"});
  EXPECT_EQ(told.exit_code, 0) << told.err;
  for (const char* piece :
       {"small.gguf, 3 layers of 6 heads", "a uniform head would give each 0.250", "15 more (--top all)",
        "It is a debugging picture, not an account of why", "Largest difference of a weight from float64"})
    EXPECT_NE(told.out.find(piece), std::string::npos) << told.out;
  const Outcome all = attn({"map", "--model", "small.gguf", "the was it was", "--top", "all"});
  EXPECT_EQ(all.out.find("--top all"), std::string::npos);
  EXPECT_NE(all.out.find("On average over the tokens from the third on"), std::string::npos);
  const Outcome twice = attn({"map", "--model", "small.gguf", "--from", "was", "the was it was"});
  EXPECT_NE(twice.err.find("\"was\" is there 2 times; this is the last, at position 4"), std::string::npos);
}

TEST_F(Models, MapOfAnEncoderHasTheTextsEmbedding) {
  const json map = json_of(attn({"map", "--model", "encoder", "the kettle was it.", "--json"}));
  EXPECT_EQ(map["embedding"].size(), 24U);
  EXPECT_EQ(map["tokens"].front(), "[CLS]");
  EXPECT_EQ(map["from"], nullptr);
}

TEST_F(Models, MapWritesPicturesAndNumbers) {
  const std::vector<std::string> map{"map", "--model", "small.gguf", "--from", "it", "the was it was"};
  for (const char* name : {"map.svg", "map.png"}) {
    EXPECT_NE(with(map, {"-o", name}).out.find(std::string("Written: ") + name), std::string::npos);
    EXPECT_GT(contents_of(path(name)).size(), 5000U);
  }
  EXPECT_EQ(with(map, {"--layer", "1", "--head", "2", "-o", "one.svg"}).exit_code, 0);
  EXPECT_NE(contents_of(path("one.svg")).find("Layer 1, head 2, from"), std::string::npos);
  EXPECT_EQ(attn({"map", "--model", "small.gguf", "the was it was", "-o", "all.npz"}).exit_code, 0);
  std::vector<std::int64_t> shape;
  const std::vector<double> weights = read("all.npz:weights", &shape);
  EXPECT_EQ(shape, (std::vector<std::int64_t>{3, 6, 5, 5}));
  EXPECT_EQ(with(map, {"--layer", "1", "--head", "2", "-o", "row.csv"}).exit_code, 0);
  std::istringstream lines(contents_of(path("row.csv")));
  std::string line;
  std::getline(lines, line);
  EXPECT_EQ(line, "layer,head,query_position,query_token,key_position,key_token,weight");
  for (std::size_t j = 0; j < 4; ++j) {
    ASSERT_TRUE(std::getline(lines, line));
    EXPECT_TRUE(line.starts_with("1,2,3,\u2581it," + std::to_string(j) + ",")) << line;
    EXPECT_EQ(std::stof(line.substr(line.rfind(',') + 1)),
              static_cast<float>(weights[(1 * 6 + 2) * 25 + 3 * 5 + j]));
  }
  EXPECT_FALSE(std::getline(lines, line));
  EXPECT_EQ(with(map, {"--layer", "1", "--head", "2", "-o", "row.npz"}).exit_code, 0);
  const std::vector<double> row = read("row.npz:weights", &shape);
  EXPECT_EQ(shape, (std::vector<std::int64_t>{1, 1, 1, 5}));
  for (std::size_t j = 0; j < 5; ++j) EXPECT_EQ(row[j], weights[(1 * 6 + 2) * 25 + 3 * 5 + j]);
}

TEST_F(Models, MapMeasuresRoles) {
  put("small.gguf", model::small_model({.layers = 1}).finish());
  // Too few tokens to draw 48 different ones from.
  expect_refused({"map", "--model", "small.gguf", "--roles"}, "different ones are drawn");
  std::vector<std::string> words;
  for (int i = 0; i < 60; ++i) words.push_back("w" + std::to_string(i));
  model::SmallEncoder with_words(words, 2);
  with_words.context = 128;
  model::SmallEncoder wide = with_words;
  wide.tensors["embeddings.position_embeddings.weight"].resize(128 * 24, 0.1F);
  wide.shapes["embeddings.position_embeddings.weight"] = {128, 24};
  wide.write(path("wide").string());
  const json roles = json_of(attn({"map", "--model", "wide", "--roles", "--json"}));
  ASSERT_EQ(roles["roles"].size(), 6U);
  for (const char* role : {"previous", "duplicate", "induction", "first", "text_previous", "text_first"})
    EXPECT_TRUE(roles["roles"][0].contains(role));
  EXPECT_NE(attn({"map", "--model", "wide", "--roles"}).out.find("Olsson et al., 2022"), std::string::npos);
}

// The page holds every weight that a query may give, rounded; of chosen heads, if they are chosen.
TEST_F(Models, MapWritesPages) {
  if (!ATTN_HAS_PAGE) GTEST_SKIP() << "this build has no page (ATTN_BUILD_PAGE)";
  const auto given = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"map", "--model", "small.gguf", "it was", "-o", "map.html"});
    EXPECT_EQ(attn(arguments).exit_code, 0);
    std::ifstream file(path("map.html"));
    const std::string html{std::istreambuf_iterator<char>(file), {}},
        open = R"(<script id="given" type="application/json">)";
    const std::size_t begin = html.find(open) + open.size();
    return json::parse(html.substr(begin, html.find("</script>", begin) - begin))["map"];
  };
  const json all = given({}), one = given({"--layer", "1", "--head", "2"});
  const std::size_t n = all["tokens"].size(), bytes = 18 * n * (n + 1) / 2;
  EXPECT_EQ(all["weights"].get<std::string>().size(), (bytes + 2) / 3 * 4);
  EXPECT_EQ(one["layers"], json({1}));
  EXPECT_EQ(one["heads"], json({2}));
  EXPECT_TRUE(one["weights"].get<std::string>().starts_with("/"));  // the first token gives itself all: 255
  EXPECT_NE(one["caveat"].get<std::string>().find("not an account"), std::string::npos);
  // It opens at the head that the program lists first; of those that are there.
  const json ranked = json::parse(attn({"map", "--model", "small.gguf", "it was", "--from", "was", "--json"}).out);
  const json from = given({"--from", "was"}), first = ranked["ranking"][0];
  EXPECT_EQ(from["layers"][from["layer"].get<std::size_t>()], first["layer"]);
  EXPECT_EQ(from["heads"][from["head"].get<std::size_t>()], first["head"]);
  EXPECT_EQ(one["layer"], 0);
  EXPECT_EQ(one["head"], 0);
}

TEST_F(Models, MapRefusesWhatMakesNoSense) {
  const auto refused = [&](std::vector<std::string> more, const std::string& piece) {
    more.insert(more.begin(), {"map", "--model", "small.gguf"});
    expect_refused(more, piece);
  };
  refused({}, "text: not given");
  refused({"it", "--from", "kettle"}, "--from: \"kettle\" is no token of the text");
  refused({"it", "--layer", "3"}, "--layer: 3, but the model has 3 layers");
  refused({"it", "--layer", "1", "--head", "6"}, "--head: 6, but the model has 6 heads");
  refused({"it", "--head", "1"}, "--head: of which layer?");
  refused({"it", "--top", "0"}, "--top: \"0\"");
  if (!ATTN_HAS_PAGE) refused({"it", "-o", "map.html"}, "-o: map.html: ");
  refused({"it", "-o", "map.pdf"}, "-o: map.pdf does not end in .html");
  refused({"it", "-o", "-"}, "-o: - does not end in .html");
  refused({"it", "-o", "none/map.svg"}, "none");
  refused({"--roles", "--from", "it"}, "--from: --roles measures all heads");
  refused({std::string(600, 'x')}, "positions; give a shorter one");
}

}  // namespace
}  // namespace attn::cli
