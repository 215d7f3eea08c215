// The inputs of the probe.
#include <cmath>
#include <random>

#include "diagnose/probe.h"

namespace attn::diagnose {
namespace {

// Numbers between −1.5 and 1.5, the same on every machine.
class Source {
 public:
  explicit Source(std::uint64_t seed) : random_(seed) {}
  float next(double size = 1.5) {
    return static_cast<float>((static_cast<double>(random_() >> 11) * 0x1p-52 - 1) * size);
  }
  std::uint64_t whole(std::uint64_t below) { return random_() % below; }

 private:
  std::mt19937_64 random_;
};

std::int64_t count_of(const std::vector<std::int64_t>& shape) {
  std::int64_t count = 1;
  for (const std::int64_t size : shape) count *= size;
  return count;
}

struct Sizes {
  std::int64_t batch = 1, heads = 1, kv_heads = 1, queries = 6, keys = 6, dim = 5, value_dim = 5;
};

// A case in the making.
class Maker {
 public:
  Maker(std::string name, std::string about, Sizes sizes, std::uint64_t seed) : source_(seed), sizes_(sizes) {
    case_.name = std::move(name);
    case_.about = std::move(about);
    case_.out_shape = {sizes.batch, sizes.heads, sizes.queries, sizes.value_dim};
  }

  Maker& tensor(const std::string& name, std::vector<std::int64_t> shape, double size = 1.5) {
    ProbeTensor tensor{name, std::move(shape), {}, {}};
    for (std::int64_t n = count_of(tensor.shape); n > 0; --n) tensor.numbers.push_back(source_.next(size));
    case_.tensors.push_back(std::move(tensor));
    return *this;
  }
  Maker& qkv(double size = 1.5) {
    const auto [b, h, hkv, n, m, d, dv] = sizes_;
    return tensor("q", {b, h, n, d}, size).tensor("k", {b, hkv, m, d}, size).tensor("v", {b, hkv, m, dv});
  }
  Maker& argument(const std::string& name, const std::string& json) {
    case_.arguments.emplace_back(name, json);
    return *this;
  }
  Maker& causal(const char* alignment = nullptr) {
    case_.options.causal = true;
    argument("causal", "true");
    if (!alignment) return *this;
    const bool top = std::string(alignment) == "top-left";
    case_.options.alignment = top ? Alignment::top_left : Alignment::bottom_right;
    return argument("align", "\"" + std::string(alignment) + "\"");
  }
  ProbeTensor& last() { return case_.tensors.back(); }
  ProbeTensor& named(const std::string& name) { return const_cast<ProbeTensor&>(*case_.find(name)); }
  AttentionOptions& options() { return case_.options; }
  ProbeCase& made() { return case_; }
  Source& source() { return source_; }

 private:
  ProbeCase case_;
  Source source_;
  Sizes sizes_;
};

ProbeCase identity(const std::string& name, const std::string& about) {
  Maker maker(name, about, {.queries = 6, .keys = 6, .dim = 4, .value_dim = 6}, 1);
  maker.qkv();
  for (std::size_t n = 0; n < 36; ++n) maker.named("v").numbers[n] = n % 7 == 0 ? 1.0F : 0.0F;
  return maker.made();
}

ProbeCase masked() {
  Maker maker("mask", "A boolean mask, true = may attend; row 2 of sequence 0 sees nothing and is 0.",
              {.batch = 3, .heads = 2, .kv_heads = 2, .queries = 5, .keys = 5}, 6);
  maker.qkv();
  ProbeTensor mask{"mask", {3, 1, 5, 5}, {}, {}};
  for (std::int64_t n = 0; n < 75; ++n) mask.truths.push_back(n / 5 != 2 && maker.source().whole(3) != 0);
  maker.made().tensors.push_back(mask);
  return maker.made();
}

ProbeCase lengths() {
  Maker maker("lengths", "Keys beyond each sequence's length are padding, which holds large numbers.",
              {.batch = 3, .heads = 2, .kv_heads = 2, .queries = 4, .keys = 8}, 7);
  maker.qkv().argument("lengths", "[8, 3, 5]");
  maker.made().lengths = {8, 3, 5};
  for (const char* name : {"k", "v"}) {
    ProbeTensor& tensor = maker.named(name);
    for (std::size_t n = 0; n < tensor.numbers.size(); ++n) {
      const std::size_t j = n / 5 % 8, b = n / 80;
      if (j >= (b == 0 ? 8U : b == 1 ? 3U : 5U)) tensor.numbers[n] *= 7;
    }
  }
  return maker.made();
}

ProbeCase biased() {
  Maker maker("bias-softcap-scale", "A finite bias, a softcap of 2 and a scale of 0.4; causal.",
              {.heads = 2, .kv_heads = 2, .queries = 7, .keys = 7}, 8);
  maker.qkv().tensor("bias", {1, 1, 7, 7}, 2).argument("softcap", "2.0").argument("scale", "0.4").causal();
  maker.options().softcap = 2;
  maker.options().scale = 0.4;
  return maker.made();
}

ProbeCase alibi(std::int64_t heads) {
  Maker maker("alibi-" + std::to_string(heads),
              "ALiBi with the standard slopes of " + std::to_string(heads) + " heads; causal.",
              {.heads = heads, .kv_heads = heads, .queries = 7, .keys = 7, .dim = 3, .value_dim = 3},
              9 + static_cast<std::uint64_t>(heads));
  maker.qkv().argument("alibi", "true").causal();
  maker.made().alibi = true;
  return maker.made();
}

ProbeCase sinks(bool large) {
  Maker maker(large ? "large-sink" : "sinks",
              large ? "A learned logit a head in the softmax, much larger than all scores."
                    : "A learned logit a head in the softmax.",
              {.heads = 2, .kv_heads = 2, .queries = 3, .keys = 300, .dim = 4, .value_dim = 4}, large ? 21 : 20);
  maker.qkv().tensor("sinks", {2});
  if (large) maker.last().numbers = {18, 20};
  return maker.made();
}

// Scores grow with the keys, so that the running maximum does.
ProbeCase growing() {
  Maker maker("growing", "600 keys whose scores grow.", {.queries = 3, .keys = 600, .dim = 4, .value_dim = 4}, 22);
  maker.qkv();
  ProbeTensor &q = maker.named("q"), &k = maker.named("k");
  for (float& number : q.numbers) number = std::fabs(number) + 0.5F;
  for (std::size_t j = 0; j < 600; ++j) {
    for (std::size_t d = 0; d < 4; ++d) k.numbers[4 * j + d] += static_cast<float>(j) * 0.01F;
  }
  return maker.made();
}

ProbeCase large_scores() {
  Maker maker("large-scores", "Scores of up to some hundreds; causal.",
              {.queries = 8, .keys = 8, .dim = 4, .value_dim = 4}, 23);
  maker.qkv(30).causal();
  maker.made().large_scores = true;
  return maker.made();
}

// Every score lies far below the constants that are taken for −∞.
ProbeCase low_scores() {
  Maker maker("low-scores", "Scores below -20000; causal.", {.queries = 6, .keys = 6, .dim = 4, .value_dim = 4},
              24);
  maker.qkv().causal();
  maker.made().large_scores = true;
  ProbeTensor &q = maker.named("q"), &k = maker.named("k");
  for (std::size_t n = 0; n < q.numbers.size(); ++n) {
    q.numbers[n] = 100 + q.numbers[n] * 0.01F;
    k.numbers[n] = -100 * 2 + k.numbers[n] * 0.01F;
  }
  return maker.made();
}

ProbeCase rope(bool decode) {
  const std::int64_t queries = decode ? 1 : 7;
  Maker maker(decode ? "rope-decode" : "rope",
              decode ? "q is one new token at position 11, k are positions 0 to 11; rotate both (half-split pairs, "
                       "base 10000)."
                     : "Rotate q and k at positions 0 to 6 (half-split pairs, base 10000), then attend; causal.",
              {.heads = 2, .kv_heads = 2, .queries = queries, .keys = decode ? 12 : 7, .dim = 6, .value_dim = 6},
              decode ? 26 : 25);
  maker.qkv().causal(decode ? "bottom-right" : nullptr).argument("rope_base", "10000.0");
  maker.argument("query_positions", decode ? "[11]" : "[0, 1, 2, 3, 4, 5, 6]");
  maker.made().kind = ProbeKind::rope;
  return maker.made();
}

ProbeCase projection() {
  Maker maker("projection", "x·w has the columns q, k, v, each of both heads; attend; causal.",
              {.heads = 2, .kv_heads = 2, .queries = 6, .keys = 6, .dim = 4, .value_dim = 4}, 27);
  maker.tensor("x", {6, 5}).tensor("w", {5, 24}, 0.7).argument("heads", "2").causal();
  maker.made().kind = ProbeKind::projection;
  return maker.made();
}

ProbeCase strided() {
  Maker maker("strided", "q, k and v lie as [B, N, H, D] in memory; pass them transposed, without a copy.",
              {.heads = 3, .kv_heads = 3, .queries = 4, .keys = 4, .dim = 5, .value_dim = 5}, 28);
  maker.tensor("q_bnhd", {1, 4, 3, 5}).tensor("k_bnhd", {1, 4, 3, 5}).tensor("v_bnhd", {1, 4, 3, 5});
  maker.made().kind = ProbeKind::strided;
  return maker.made();
}

ProbeCase merge() {
  Maker maker("merge",
              "outs and natural lses of two halves of the keys; merge them to the attention over all keys.",
              {.heads = 2, .kv_heads = 2, .queries = 4, .dim = 5, .value_dim = 5}, 29);
  maker.tensor("outs", {2, 2, 4, 5}).tensor("lses", {2, 2, 4});
  for (float& lse : maker.last().numbers) lse += 2;
  maker.made().kind = ProbeKind::merge;
  maker.made().out_shape = {1, 2, 4, 5};
  return maker.made();
}

ProbeCase simple(const char* name, const char* about, Sizes sizes, std::uint64_t seed, bool causal,
                 const char* alignment = nullptr) {
  Maker maker(name, about, sizes, seed);
  maker.qkv();
  if (causal) maker.causal(alignment);
  return maker.made();
}

ProbeCase window() {
  Maker maker("window", "Each query sees itself and the 3 keys before it.",
              {.heads = 2, .kv_heads = 2, .queries = 10, .keys = 10}, 30);
  maker.qkv().causal().argument("window_left", "3");
  maker.options().window_left = 3;
  return maker.made();
}

std::vector<ProbeCase> make_cases() {
  return {identity("identity", "v is the identity: the output is the weights."),
          identity("identity-again", "The same once more: nothing may be random."),
          simple("heads", "Three heads, two sequences, no mask.",
                 {.batch = 2, .heads = 3, .kv_heads = 3, .queries = 7, .keys = 7}, 2, false),
          simple("causal", "Three heads, two sequences; causal.",
                 {.batch = 2, .heads = 3, .kv_heads = 3, .queries = 7, .keys = 7}, 3, true),
          simple("bottom-right", "4 new queries behind 5 cached keys; causal, the last query at the last key.",
                 {.heads = 2, .kv_heads = 2, .queries = 4, .keys = 9}, 4, true, "bottom-right"),
          simple("top-left", "4 queries and 9 keys; causal, the first query at the first key.",
                 {.heads = 2, .kv_heads = 2, .queries = 4, .keys = 9}, 5, true, "top-left"),
          simple("grouped", "6 query heads share 2 key/value heads; causal.",
                 {.heads = 6, .kv_heads = 2, .queries = 6, .keys = 6}, 10, true),
          masked(),
          lengths(),
          biased(),
          window(),
          alibi(6),
          alibi(8),
          sinks(false),
          sinks(true),
          growing(),
          large_scores(),
          low_scores(),
          rope(false),
          rope(true),
          projection(),
          strided(),
          merge()};
}

}  // namespace

const ProbeTensor* ProbeCase::find(const std::string& tensor) const {
  for (const ProbeTensor& candidate : tensors) {
    if (candidate.name == tensor) return &candidate;
  }
  return nullptr;
}

const std::vector<ProbeCase>& probe_cases() {
  static const std::vector<ProbeCase> kCases = make_cases();
  return kCases;
}

}  // namespace attn::diagnose
