#include "engine_random.h"

#include <algorithm>
#include <limits>
#include <ostream>
#include <random>
#include <sstream>

namespace attn::tests {
namespace {

template <class T>
std::ostream& operator<<(std::ostream& stream, const std::optional<T>& value) {
  return value ? stream << *value : stream << "none";
}

bool one_in(int n) { return *rc::gen::inRange(0, n) == 0; }

template <class T>
T one_of(std::initializer_list<T> choices) {
  return *rc::gen::elementOf(std::vector<T>(choices));
}

std::int64_t any_keys(bool many) {
  if (many) return *rc::gen::element<std::int64_t>(2000, 2048, 2049, 2600, 4096, 4097, 5000, 6200);
  return *rc::gen::weightedOneOf<std::int64_t>(
      {{6, rc::gen::inRange<std::int64_t>(0, 70)},
       {3, rc::gen::element<std::int64_t>(1, 2, 15, 16, 17, 63, 64, 65, 255, 256, 257, 300, 511, 513, 700)},
       {1, rc::gen::element<std::int64_t>(2047, 2048, 2049, 2304, 4097)}});
}

Sizes any_sizes(const RecipeLimits& limits) {
  Sizes s;
  s.batch = *rc::gen::weightedElement<std::int64_t>({{5, 1}, {3, 2}, {1, 3}});
  s.kv_heads = *rc::gen::weightedElement<std::int64_t>({{5, 1}, {3, 2}, {1, 3}});
  s.query_heads = s.kv_heads * *rc::gen::weightedElement<std::int64_t>({{5, 1}, {3, 2}, {2, 3}, {1, 7}});
  s.keys = any_keys(limits.many_keys);
  s.queries = *rc::gen::weightedOneOf<std::int64_t>({{6, rc::gen::inRange<std::int64_t>(0, 40)},
                                                     {2, rc::gen::element<std::int64_t>(1, 95, 96, 97, 200)},
                                                     {2, rc::gen::just(s.keys)}});
  const auto any_dim = rc::gen::weightedOneOf<std::int64_t>(
      {{5, rc::gen::inRange<std::int64_t>(1, 40)},
       {3, rc::gen::element<std::int64_t>(16, 32, 63, 64, 65, 80, 96, 128, 129)}});
  s.key_dim = *any_dim;
  s.value_dim = one_in(2) ? s.key_dim : *any_dim;
  if (limits.many_keys) {  // long, not wide as well
    s.query_heads = std::min<std::int64_t>(s.query_heads / s.kv_heads, 2);
    s.kv_heads = 1;
    s.batch = std::min<std::int64_t>(s.batch, 2);
    s.key_dim = std::min<std::int64_t>(s.key_dim, 20);
    s.value_dim = std::min<std::int64_t>(s.value_dim, 20);
  }
  const auto work = [&] { return s.batch * s.query_heads * s.queries * s.keys * (s.key_dim + s.value_dim); };
  while (work() > limits.most_work && s.queries > 1) s.queries = (s.queries + 1) / 2;
  return s;
}

void choose_types(const RecipeLimits& limits, Recipe* r) {
  if (limits.double_precision && one_in(6)) {
    r->q = r->kv = r->out = DType::f64;
  } else {
    const auto any = rc::gen::weightedElement<DType>({{4, DType::f32}, {2, DType::f16}, {2, DType::bf16}});
    r->q = *any;
    r->kv = *any;
    r->out = *any;
  }
  const auto layout = rc::gen::elementOf(std::vector<Layout>(std::begin(kLayouts), std::end(kLayouts)));
  r->q_layout = *layout;
  r->kv_layout = one_in(2) ? Layout::row_major : *layout;
  r->out_layout = *layout;
}

void choose_positions(Recipe* r) {
  r->causal = one_in(2);
  const auto reach = rc::gen::weightedOneOf<std::int64_t>(
      {{6, rc::gen::inRange<std::int64_t>(0, 60)},
       {2, rc::gen::element<std::int64_t>(0, 255, 256, 300, 2048, std::numeric_limits<std::int64_t>::max())}});
  if (one_in(3)) r->window_left = *reach;
  if (one_in(4)) r->window_right = *reach;
  if (one_in(4)) r->sink_tokens = *rc::gen::element<std::int64_t>(1, 4, 17, 256, 300);
  r->alibi = one_in(4);
  r->alignment =
      one_of({Alignment::top_left, Alignment::bottom_right, Alignment::offset, Alignment::equal_lengths});
  if (r->alignment == Alignment::offset) {
    r->offset = *rc::gen::inRange<std::int64_t>(-20, std::max<std::int64_t>(r->sizes.keys, 1) + 20);
  }
  if (one_in(8)) {
    r->key_offset = *rc::gen::element<std::int64_t>(1, 16, 250, 256, 2048, 5000);
    if (r->alignment != Alignment::offset) r->alignment = Alignment::top_left;
    if (one_in(2)) r->alignment = Alignment::offset, r->offset += r->key_offset;
  }
}

Recipe any_recipe(const RecipeLimits& limits) {
  Recipe r;
  r.seed = *rc::gen::arbitrary<std::uint32_t>();
  r.sizes = any_sizes(limits);
  choose_types(limits, &r);
  choose_positions(&r);
  r.spread = one_of({1.0, 1.0, 3.0, 30.0});
  r.odd_numbers = one_in(4) ? 10 : 0;
  r.nonfinite = limits.nonfinite && one_in(4);
  if (one_in(3)) r.scale = one_of({0.0, -0.25, 0.125, 1.0});
  if (one_in(4)) r.softcap = one_of({0.5, 5.0, 50.0});
  if (one_in(3)) r.mask = *rc::gen::inRange(1, 17);
  if (one_in(3)) r.bias = *rc::gen::inRange(1, 17);
  r.hidden_percent = one_of({0, 10, 60, 95, 100});
  r.sinks = one_in(5);
  if (one_in(3)) r.ragged = limits.packed && one_in(2) ? Ragged::packed : Ragged::padded;
  // Without an alignment, positions want N = M in every sequence.
  const bool positions = r.causal || r.window_left || r.window_right || r.alibi;
  if (positions && r.alignment == Alignment::equal_lengths &&
      (r.ragged != Ragged::none || r.sizes.queries != r.sizes.keys)) {
    r.alignment = Alignment::bottom_right;
  }
  return r;
}

class Maker {
 public:
  explicit Maker(const Recipe& recipe) : r_(recipe), random_(recipe.seed) {}

  Problem make() {
    problem_.sizes = r_.sizes;
    problem_.out_dtype = r_.out;
    problem_.out_layout = r_.out_layout;
    choose_lengths();
    const Sizes& s = r_.sizes;
    const bool packed = r_.ragged == Ragged::packed;
    const std::int64_t batch = packed ? 1 : s.batch;
    const std::int64_t queries = packed ? problem_.query_starts.back() : s.queries;
    const std::int64_t keys = packed ? problem_.key_starts.back() + below(3) : s.keys;
    problem_.q = numbers(r_.q, {batch, s.query_heads, queries, s.key_dim}, r_.q_layout, r_.spread);
    problem_.k = numbers(r_.kv, {batch, s.kv_heads, keys, s.key_dim}, r_.kv_layout, r_.spread);
    problem_.v = numbers(r_.kv, {batch, s.kv_heads, keys, s.value_dim}, r_.kv_layout, 1);
    set_plain();
    set_tensors();
    return std::move(problem_);
  }

 private:
  std::int64_t below(std::int64_t n) {
    return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(n));
  }

  double number(double spread) {
    if (r_.odd_numbers != 0 && below(r_.odd_numbers) == 0) {
      constexpr double kOdd[] = {0.0, -0.0, 1e-40, -1e-42, 60000, -1e4, 1.0};
      return kOdd[below(std::size(kOdd))];
    }
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    if (r_.nonfinite && below(200) == 0) {
      return below(2) != 0 ? std::numeric_limits<double>::quiet_NaN() : below(2) != 0 ? kInfinity : -kInfinity;
    }
    return spread * normal_(random_);
  }

  Tensor numbers(DType dtype, const std::vector<std::int64_t>& shape, Layout layout, double spread) {
    Tensor tensor(dtype, shape, layout);
    tensor.fill([&] { return number(spread); });
    return tensor;
  }

  void choose_lengths() {
    const Sizes& s = r_.sizes;
    if (r_.ragged == Ragged::padded) {
      for (std::int64_t b = 0; b < s.batch; ++b) problem_.key_lengths.push_back(below(s.keys + 1));
      if (below(2) == 0) return;
      for (std::int64_t b = 0; b < s.batch; ++b) problem_.query_lengths.push_back(below(s.queries + 1));
    }
    if (r_.ragged != Ragged::packed) return;
    problem_.query_starts = {0};
    problem_.key_starts = {0};
    // The longest sequence comes first, so that masks have the sizes that the recipe says.
    for (std::int64_t b = 0; b < s.batch; ++b) {
      const std::int64_t queries = b == 0 ? s.queries : below(s.queries + 1);
      const std::int64_t keys = b == 0 ? s.keys : below(s.keys + 1);
      problem_.query_starts.push_back(problem_.query_starts.back() + queries);
      problem_.key_starts.push_back(problem_.key_starts.back() + keys);
    }
  }

  void set_plain() {
    AttentionOptions& o = problem_.plain;
    o.scale = r_.scale;
    o.softcap = r_.softcap;
    o.causal = r_.causal;
    o.alignment = r_.alignment;
    o.window_left = r_.window_left;
    o.window_right = r_.window_right;
    o.sink_tokens = r_.sink_tokens;
    o.key_offset = r_.key_offset;
    if (r_.alignment != Alignment::offset) return;
    o.position_offset = r_.offset;
    if (r_.ragged == Ragged::none) return;
    for (std::int64_t b = 0; b < r_.sizes.batch; ++b) problem_.position_offsets.push_back(r_.offset + 3 * b);
  }

  std::vector<std::int64_t> broadcast_shape(int full) const {
    const Sizes& s = r_.sizes;
    const std::int64_t sizes[] = {s.batch, s.query_heads, s.queries, s.keys};
    std::vector<std::int64_t> shape;
    for (int d = 0; d < 4; ++d) shape.push_back((full >> d & 1) != 0 ? sizes[d] : 1);
    return shape;
  }

  void set_tensors() {
    const DType single = problem_.compute();
    const auto hidden = [this] { return below(100) < r_.hidden_percent; };
    if (r_.mask != 0) {
      problem_.mask = Tensor(DType::boolean, broadcast_shape(r_.mask), r_.out_layout);
      problem_.mask->fill([&] { return hidden() ? 0.0 : 1.0; });
    }
    if (r_.bias != 0) {
      const DType dtype = single == DType::f64 ? single : below(2) != 0 ? DType::f32 : r_.kv;
      problem_.bias = Tensor(dtype, broadcast_shape(r_.bias), r_.kv_layout);
      problem_.bias->fill(
          [&] { return hidden() ? -std::numeric_limits<double>::infinity() : 2 * normal_(random_); });
    }
    if (r_.alibi) {
      const std::vector<float> slopes = alibi_slopes(static_cast<int>(r_.sizes.query_heads));
      problem_.alibi = Tensor(single, {r_.sizes.query_heads});
      for (std::size_t h = 0; h < slopes.size(); ++h) problem_.alibi->set(static_cast<std::int64_t>(h), slopes[h]);
    }
    if (r_.sinks) problem_.sinks = normal_tensor(single, {r_.sizes.query_heads}, r_.seed + 9, 3);
  }

  const Recipe& r_;
  std::mt19937_64 random_;
  std::normal_distribution<double> normal_;
  Problem problem_;
};

}  // namespace

std::ostream& operator<<(std::ostream& stream, const Recipe& r) {
  const Sizes& s = r.sizes;
  stream << "seed " << r.seed << ", B " << s.batch << ", Hq " << s.query_heads << ", Hkv " << s.kv_heads << ", N "
         << s.queries << ", M " << s.keys << ", Dk " << s.key_dim << ", Dv " << s.value_dim << ", q "
         << name_of(r.q) << ", kv " << name_of(r.kv) << ", out " << name_of(r.out) << ", layouts "
         << static_cast<int>(r.q_layout) << ' ' << static_cast<int>(r.kv_layout) << ' '
         << static_cast<int>(r.out_layout) << ", spread " << r.spread << ", odd " << r.odd_numbers << ", nonfinite "
         << r.nonfinite << ", scale " << r.scale << ", softcap " << r.softcap << ", causal " << r.causal
         << ", alignment " << static_cast<int>(r.alignment) << " offset " << r.offset << ", window "
         << r.window_left << ' ' << r.window_right << ", sink tokens " << r.sink_tokens << ", mask " << r.mask
         << ", bias " << r.bias << ", hidden % " << r.hidden_percent << ", alibi " << r.alibi << ", sinks "
         << r.sinks << ", ragged " << static_cast<int>(r.ragged) << ", key offset " << r.key_offset;
  return stream;
}

rc::Gen<Recipe> recipes(const RecipeLimits& limits) {
  // At full size from the first problem on: what is drawn is already kept small enough.
  return rc::gen::resize(rc::kNominalSize, rc::gen::exec([limits] { return any_recipe(limits); }));
}

Problem make(const Recipe& recipe) { return Maker(recipe).make(); }

void check_problems(const std::string& what, int count, const RecipeLimits& limits,
                    const std::function<testing::AssertionResult(const Recipe&, const Problem&)>& property) {
  // RapidCheck's parameters say how often for all properties alike; here each says it for itself.
  rc::detail::TestParams params = rc::detail::configuration().testParams;
  params.maxSuccess = effort(count);
  const auto result = rc::detail::checkTestable(
      [&] {
        const Recipe recipe = *recipes(limits);
        const testing::AssertionResult held = property(recipe, make(recipe));
        if (!held) RC_FAIL(held.message());
      },
      rc::detail::TestMetadata{what, what}, params);
  if (!result.template is<rc::detail::SuccessResult>()) {
    std::ostringstream told;
    rc::detail::printResultMessage(result, told);
    ADD_FAILURE() << what << " (RC_PARAMS=\"seed=" << params.seed << "\" repeats it)\n" << told.str();
  }
}

}  // namespace attn::tests
