// Thousands of random operations on a cache and on a simple model of it: the same tokens, the same pages, and never
// anything of a free page in a result.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <random>

#include "cache_model.h"
#include "cache_problem.h"
#include "engine_problem.h"
#include "src/cache/contents.h"

namespace attn::tests {
namespace {

constexpr std::int64_t kHeads = 2, kKeyDim = 3, kValueDim = 35, kMostPages = 60;

class Walk {
 public:
  Walk(CacheType type, std::int64_t page_tokens, std::uint64_t seed)
      : model_(kHeads, kKeyDim, kValueDim, page_tokens), random_(seed) {
    KvCacheOptions options{.kv_heads = kHeads,
                           .key_dim = kKeyDim,
                           .value_dim = kValueDim,
                           .type = type,
                           .page_tokens = page_tokens,
                           .most_bytes = std::int64_t{1} << 40};
    std::unique_ptr<KvCache> probe;
    EXPECT_TRUE(KvCache::create(options, &probe).ok());
    options.most_bytes = kMostPages * probe->usage().page_bytes;
    EXPECT_TRUE(KvCache::create(options, &cache_).ok());
  }

  void step() {
    switch (below(model_.sequences.empty() ? 1 : 16)) {
      case 0: add(); break;
      case 1:
      case 2: fork(); break;
      case 3: truncate(); break;
      case 4: drop(); break;
      case 5: release(); break;
      case 6: poison(); break;
      case 7: wrong(); break;
      case 8:
        if (below(20) == 0) save_and_load();
        break;
      case 9:
      case 10:
      case 11: attend(); break;
      default: append();
    }
    check();
  }

  void finish() {
    while (!model_.sequences.empty()) release();
    check();
    EXPECT_EQ(cache_->usage().pages_in_use, 0);
  }

 private:
  std::int64_t below(std::int64_t n) {
    return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(n));
  }

  SequenceId any() {
    auto at = model_.sequences.begin();
    std::advance(at, below(static_cast<std::int64_t>(model_.sequences.size())));
    return at->first;
  }
  std::int64_t length(SequenceId id) const {
    return static_cast<std::int64_t>(model_.sequences.at(id).tokens.size());
  }

  void add() {
    if (model_.sequences.size() >= 12) return;
    const SequenceId id = new_sequence(cache_.get());
    EXPECT_EQ(model_.sequences.count(id), 0U) << "an id came twice";
    model_.sequences[id] = {};
  }

  void append() {
    std::vector<SequenceId> ids;
    for (const auto& [id, s] : model_.sequences) {
      if (below(3) == 0) ids.push_back(id);
    }
    if (ids.empty()) ids.push_back(any());
    const std::int64_t page = cache_->options().page_tokens;
    const std::int64_t count = below(4) == 0 ? below(3 * page) : below(4);
    const auto [k, v] = next_tokens(ids, count);
    const Status status = cache_->append(ids, k.view(), v.view());
    EXPECT_EQ(status.ok(), after_pages(ids, count) <= kMostPages) << status.message();
    if (!status.ok()) return;
    for (const SequenceId id : ids) model_.append(id, count);
  }

  // k and v [sequences, heads, count, D] of the tokens that the model would append.
  std::pair<Tensor, Tensor> next_tokens(const std::vector<SequenceId>& ids, std::int64_t count) const {
    CacheModel after = model_;
    for (const SequenceId id : ids) after.append(id, count);
    Tensor k(DType::f32, {static_cast<std::int64_t>(ids.size()), kHeads, count, kKeyDim});
    Tensor v(DType::f32, {static_cast<std::int64_t>(ids.size()), kHeads, count, kValueDim});
    std::int64_t key = 0, value = 0;
    for (const SequenceId id : ids) {
      const Tensor keys = after.keys(id, length(id), count), values = after.values(id, length(id), count);
      for (std::int64_t i = 0; i < keys.size(); ++i) k.set(key++, keys.get(i));
      for (std::int64_t i = 0; i < values.size(); ++i) v.set(value++, values.get(i));
    }
    return {k, v};
  }

  // Pages that sequences would hold: all but the last writer of a page copy it.
  std::int64_t after_pages(const std::vector<SequenceId>& ids, std::int64_t count) {
    std::map<const int*, std::int64_t> writers;
    std::int64_t pages = model_.pages();
    const std::int64_t page = cache_->options().page_tokens;
    for (const SequenceId id : ids) {
      const CacheModel::Sequence& s = model_.sequences.at(id);
      if (count == 0) continue;
      const std::int64_t first = length(id) / page, end = (length(id) + count + page - 1) / page;
      for (std::int64_t i = first; i < end; ++i) {
        const std::shared_ptr<int> none;
        const auto& open = i < static_cast<std::int64_t>(s.pages.size()) ? s.pages[i] : none;
        if (!open || ++writers[open.get()] < open.use_count()) ++pages;
      }
    }
    return pages;
  }

  void fork() {
    if (model_.sequences.size() >= 12) return;
    const SequenceId id = any();
    SequenceId copy = -1;
    EXPECT_EQ(cache_->fork(id, &copy).message(), "");
    EXPECT_EQ(model_.sequences.count(copy), 0U);
    model_.sequences[copy] = model_.sequences.at(id);
  }

  void truncate() {
    const SequenceId id = any();
    const std::int64_t tokens = std::max<std::int64_t>(0, length(id) - below(below(3) == 0 ? 100 : 5));
    EXPECT_EQ(cache_->truncate(id, tokens).message(), "");
    model_.truncate(id, tokens);
  }

  void drop() {
    const SequenceId id = any();
    const std::int64_t position = below(length(id) + 1), sinks = below(3) == 0 ? below(40) : 0;
    const Status status = cache_->drop_before(id, position, sinks);
    EXPECT_EQ(status.ok(), model_.drop_before(id, position, sinks)) << status.message();
  }

  void release() {
    const SequenceId id = any();
    EXPECT_EQ(cache_->release(id).message(), "");
    model_.sequences.erase(id);
    EXPECT_EQ(cache_->length(id), -1);
  }

  void poison() { KvCache::Contents::of(*cache_).pool.fill_free_pages(std::byte{0xFF}); }

  // What is refused changes nothing; check() sees to that.
  void wrong() {
    const SequenceId id = any();
    const Tensor k(DType::f32, {kHeads, 2, kKeyDim + 1}), v(DType::f32, {kHeads, 2, kValueDim});
    EXPECT_FALSE(cache_->append(id, k.view(), v.view()).ok());
    EXPECT_FALSE(cache_->truncate(id, length(id) + 1).ok());
    EXPECT_FALSE(cache_->drop_before(id, length(id) + 1).ok());
    EXPECT_FALSE(cache_->release(1'000'000).ok());
    EXPECT_FALSE(cache_->reserve(kMostPages * cache_->options().page_tokens + 1).ok());
  }

  void save_and_load() {
    const auto path = std::filesystem::temp_directory_path() / ("attn-walk-" + std::to_string(random_()));
    EXPECT_EQ(cache_->save(path.string()).message(), "");
    const std::int64_t budget = *cache_->options().most_bytes;
    std::unique_ptr<KvCache> loaded;
    EXPECT_EQ(KvCache::load(path.string(), &loaded, budget).message(), "");
    std::filesystem::remove(path);
    if (loaded) cache_ = std::move(loaded);
  }

  // Rows at the sequence's end, with a window that keeps off what was dropped.
  void attend() {
    const SequenceId id = any();
    const CacheModel::Sequence& s = model_.sequences.at(id);
    const std::int64_t queries = 1 + below(3);
    if (length(id) < queries) return;
    Problem problem =
        normal_problem({1, 2 * kHeads, kHeads, queries, length(id), kKeyDim, kValueDim}, random_() % 1000);
    problem.k = model_.keys(id, 0, length(id));
    problem.v = model_.values(id, 0, length(id));
    problem.plain.causal = true;
    problem.plain.alignment = Alignment::bottom_right;
    problem.plain.scale = 0.001;
    if (s.dropped_to > 0) {
      const std::int64_t left = length(id) - queries - s.dropped_to;
      if (left < 0) return expect_refusal(id, problem);
      problem.plain.window_left = left;
      problem.plain.sink_tokens = s.dropped_from;
    }
    const Answer expected = attn::tests::attend(problem);
    Answer answer = expected;
    EXPECT_EQ(
        cache_->attend({&id, 1}, problem.q.view(), answer.out.output(), problem.options(), answer.lse.output())
            .message(),
        "");
    EXPECT_TRUE(same_bits(answer, expected)) << "sequence of " << length(id);
  }

  void expect_refusal(SequenceId id, Problem& problem) {
    Tensor out(DType::f32, {1, 2 * kHeads, problem.sizes.queries, kValueDim});
    const Status status = cache_->attend({&id, 1}, problem.q.view(), out.output(), problem.options());
    EXPECT_NE(status.message().find("dropped"), std::string::npos) << status.message();
  }

  void check() {
    const KvCacheUsage usage = cache_->usage();
    EXPECT_EQ(usage.pages_in_use, model_.pages());
    EXPECT_EQ(usage.tokens, model_.tokens());
    EXPECT_EQ(usage.sequences, static_cast<std::int64_t>(model_.sequences.size()));
    EXPECT_LE(usage.pages, kMostPages);
    EXPECT_EQ(cache_->bytes(), usage.pages * usage.page_bytes);
    for (const auto& [id, s] : model_.sequences) EXPECT_EQ(cache_->length(id), length(id));
  }

  CacheModel model_;
  std::mt19937_64 random_;
  std::unique_ptr<KvCache> cache_;
};

TEST(CacheOperations, AtRandomAgreeWithTheModel) {
  std::uint64_t seed = 1;
  for (const CacheType type : {CacheType::f32, CacheType::bf16, CacheType::f16, CacheType::q8}) {
    for (const std::int64_t page : {16, 64}) {
      SCOPED_TRACE(testing::Message() << name_of(type) << ", pages of " << page << ", seed " << seed);
      Walk walk(type, page, seed++);
      for (int i = 0; i < effort(1250) && !testing::Test::HasFailure(); ++i) walk.step();
      walk.finish();
    }
  }
}

}  // namespace
}  // namespace attn::tests
