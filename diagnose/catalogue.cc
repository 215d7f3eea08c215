#include "diagnose/catalogue.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace attn::diagnose {
namespace {

using reference::Inputs;

double sqrt_of(std::int64_t size) { return std::sqrt(static_cast<double>(size)); }

Form recipe_form(std::string note, std::function<void(Recipe*)> change) {
  return {std::move(note), [change = std::move(change)](const Inputs&, Recipe* recipe) {
            change(recipe);
            return true;
          }};
}

Form when(std::function<bool(const Inputs&)> condition, std::string note, std::function<void(Recipe*)> change) {
  return {std::move(note),
          [condition = std::move(condition), change = std::move(change)](const Inputs& in, Recipe* r) {
            if (!condition(in)) return false;
            change(r);
            return true;
          }};
}

// A wrong default, and a wrong scale that is used even where another was asked for.
std::vector<Form> scale_forms(const std::function<double(const Inputs&)>& scale) {
  std::vector<Form> forms;
  for (const bool always : {false, true}) {
    forms.push_back(
        {always ? "also where a scale was given" : "", [scale, always](const Inputs& in, Recipe* recipe) {
           if (recipe->scale || (in.options.scale && !always)) return false;
           recipe->scale = scale(in);
           return std::isfinite(*recipe->scale);
         }});
  }
  return forms;
}

Form inputs_form(std::string note, std::function<bool(Inputs*)> change) {
  return {std::move(note), nullptr, std::move(change)};
}

Form around_form(std::string note, Around around) { return {std::move(note), nullptr, nullptr, around}; }

bool is_causal(const Inputs& in) { return in.options.causal; }
bool is_not_causal(const Inputs& in) { return !in.options.causal; }
bool has_window(const Inputs& in) { return in.options.window_left.has_value(); }
bool has_mask(const Inputs& in) { return in.options.mask.has_value(); }
bool has_sinks(const Inputs& in) { return in.options.sinks.has_value(); }
bool has_cap(const Inputs& in) { return in.options.softcap.has_value(); }
bool has_alibi(const Inputs& in) { return in.options.alibi.has_value(); }
bool has_lengths(const Inputs& in) { return !in.options.key_lengths.empty(); }
// Padding that could be put on the other axis: a mask [.., 1, M] or lengths, and as many queries as keys.
bool has_padding(const Inputs& in) {
  const auto& mask = in.options.mask;
  const bool one_row = mask && (mask->rank < 2 || mask->shape[static_cast<std::size_t>(mask->rank - 2)] == 1);
  return in.query.shape[2] <= in.key.shape[2] && (one_row || (has_lengths(in) && !mask));
}
bool is_grouped(const Inputs& in) { return in.key.shape[1] > 1 && in.key.shape[1] < in.query.shape[1]; }
bool hides_some(const Inputs& in) {
  return is_causal(in) || has_mask(in) || in.options.bias.has_value() || has_window(in) ||
         in.options.window_right.has_value();
}
bool swaps_axes(const Inputs& in) {
  return in.query.shape[1] > 1 && in.query.shape[1] == in.key.shape[1] && in.query.shape[2] == in.key.shape[2];
}

// One form a size of tile.
std::vector<Form> tile_forms(std::initializer_list<std::pair<Tiles, const char*>> kinds) {
  std::vector<Form> forms;
  for (const std::int64_t tile : {1, 2, 4, 8, 16, 32, 64, 128, 256, 512}) {
    for (const auto& [kind, note] : kinds) {
      forms.push_back(
          when([tile](const Inputs& in) { return in.key.shape[2] > tile; },
               std::string(note) + ", tiles of " + std::to_string(tile) + (tile == 1 ? " key" : " keys"),
               [tile, kind = kind](Recipe* r) {
                 r->tiles = kind;
                 r->tile = tile;
               }));
    }
  }
  return forms;
}

std::vector<Form> weak_forms() {
  std::vector<Form> forms;
  const std::pair<double, const char*> scores[] = {{-1e4, "-1e4"},
                                                   {-1e9, "-1e9"},
                                                   {-std::numeric_limits<float>::max(), "the lowest float"},
                                                   {-65504, "-65504"},
                                                   {-100, "-100"}};
  for (const auto& [score, name] : scores) {
    for (const bool added : {false, true}) {
      forms.push_back(when(hides_some, std::string(name) + (added ? " added" : " instead of -inf"),
                           [score = score, added](Recipe* r) {
                             r->hiding = added ? Hiding::weak_added : Hiding::weak;
                             r->weak_score = score;
                           }));
    }
  }
  return forms;
}

std::vector<Form> sink_tile_forms() {
  std::vector<Form> forms;
  for (const std::int64_t tile : {16, 32, 64, 128, 256}) {
    forms.push_back(when([tile](const Inputs& in) { return has_sinks(in) && in.key.shape[2] > tile; },
                         "tiles of " + std::to_string(tile) + " keys",
                         [tile](Recipe* r) {
                           r->sinks = Sinks::per_tile;
                           r->tile = tile;
                         }));
  }
  return forms;
}

std::vector<Form> window_forms() {
  std::vector<Form> forms;
  for (const std::int64_t off : {1, -1}) {
    forms.push_back(when(has_window, off > 0 ? "one key too many" : "one key too few",
                         [off](Recipe* r) { r->window_left_off = off; }));
  }
  return forms;
}

std::vector<Form> diagonal_forms() {
  const auto form = [](const char* note, bool nan, bool mean) {
    return when(is_causal, note, [nan, mean](Recipe* r) {
      r->causal = Causal::diagonal_masked;
      r->empty_row_is_nan = nan;
      r->empty_row_means = mean;
    });
  };
  return {form("row 0, which then sees nothing, is 0", false, false),
          form("row 0, which then sees nothing, is NaN", true, false),
          form("row 0, which then sees nothing, is the mean of the values", false, true)};
}

std::vector<Entry> make_catalogue() {
  const auto swapped_inputs = [](bool too) { return [too](Inputs* in) { return mix_heads_and_time(in, too); }; };
  return {
      {{"scale-missing", "no 1/sqrt(Dk)", "Scores are q·k without a scale, so softmax is too peaked.",
        "Multiply q·k by 1/sqrt(Dk), Dk the head dimension."},
       scale_forms([](const Inputs&) { return 1.0; })},
      {{"scale-model", "1/sqrt(H·Dk)",
        "The scale is made from the width of the model, not of a head, so softmax is too flat.",
        "Take the head dimension: 1/sqrt(Dk)."},
       scale_forms([](const Inputs& in) { return 1 / sqrt_of(in.query.shape[1] * in.query.shape[3]); })},
      {{"scale-heads", "1/sqrt(H)", "The scale is made from the number of heads.",
        "Take the head dimension: 1/sqrt(Dk)."},
       scale_forms([](const Inputs& in) { return 1 / sqrt_of(in.query.shape[1]); })},
      {{"scale-twice", "scale applied twice", "Scores are divided by sqrt(Dk) in two places, so by Dk.",
        "Scale q or the scores, not both."},
       scale_forms([](const Inputs& in) { return in.scale * in.scale; })},
      {{"scale-on-mask", "finite bias scaled, too", "The bias is added before the scale and is multiplied with it.",
        "Add the bias after scaling."},
       {when([](const Inputs& in) { return in.options.bias.has_value(); }, "",
             [](Recipe* r) { r->scales_bias = true; })}},
      {{"scale-default", "own default where a scale was given",
        "The scale that was asked for is not used, but 1/sqrt(Dk).", "Use the given scale."},
       {{"",
         [](const Inputs& in, Recipe* recipe) {
           if (recipe->scale || !in.options.scale) return false;
           recipe->scale = 1 / sqrt_of(in.query.shape[3]);
           return true;
         }}}},
      {{"softmax-queries", "softmax over the query axis", "Each key's weights add up to 1, not each query's.",
        "Take the softmax over the last axis, the keys."},
       {recipe_form("", [](Recipe* r) { r->softmax = Softmax::queries; })}},
      {{"softmax-heads", "softmax over heads or batch",
        "The softmax runs over another axis; where that has size 1 all weights are 1.",
        "Take the softmax over the last axis, the keys."},
       {recipe_form("over heads", [](Recipe* r) { r->softmax = Softmax::heads; }),
        recipe_form("over the batch", [](Recipe* r) { r->softmax = Softmax::batch; })}},
      {{"softmax-twice", "softmax taken twice", "The weights go through a second softmax and are nearly uniform.",
        "Take it once; losses and kernels often have one built in."},
       {recipe_form("", [](Recipe* r) { r->softmax = Softmax::twice; })}},
      {{"softmax-missing", "no softmax, or not divided by its sum", "Weights do not add up to 1.",
        "Divide by the row's sum."},
       {recipe_form("e^(score - max), not divided by the sum",
                    [](Recipe* r) { r->softmax = Softmax::not_divided; }),
        recipe_form("scores themselves as weights", [](Recipe* r) { r->softmax = Softmax::scores_as_weights; })}},
      {{"softmax-no-max", "no maximum subtracted", "e^score overflows where a score exceeds 88 (f32) or 11 (f16).",
        "Subtract each row's largest score first."},
       {recipe_form("in f32", [](Recipe* r) { r->subtracts_max = false; }), recipe_form("in f16",
                                                                                        [](Recipe* r) {
                                                                                          r->subtracts_max = false;
                                                                                          r->half_exponential =
                                                                                              true;
                                                                                        })}},
      {{"softmax-16bit", "scores or softmax in 16 bits",
        "Scores are rounded to 16 bits, so errors grow with their size.",
        "Keep scores and sums in f32, also for 16-bit tensors."},
       {}},
      {{"online-no-rescale", "earlier tiles not rescaled",
        "When the running maximum grows, what was summed before keeps its old reference.",
        "Multiply running sum and output by e^(old max - new max)."},
       tile_forms({{Tiles::no_rescale, "neither sum nor output rescaled"},
                   {Tiles::no_rescale_out, "output not rescaled"},
                   {Tiles::no_rescale_sum, "sum not rescaled"}})},
      {{"tile-normalised", "each tile normalised on its own", "Every tile's weights add up to 1.",
        "Keep the running maximum and sum over all tiles, and divide once."},
       tile_forms({{Tiles::normalised_sum, "tiles added"}, {Tiles::normalised_mean, "tiles averaged"}})},
      {{"mask-after-softmax", "weights zeroed after softmax",
        "Hidden keys take part in the sum, so rows add up to less than 1.",
        "Mask scores with -inf before softmax (or renormalise)."},
       {when(hides_some, "", [](Recipe* r) { r->hiding = Hiding::after_softmax; })}},
      {{"mask-zero", "masked scores set to 0", "0 is a score like any other: hidden keys get weight.",
        "Set them to -inf."},
       {when(hides_some, "", [](Recipe* r) { r->hiding = Hiding::score_zero; })}},
      {{"mask-missing", "mask not used", "The boolean mask changes nothing.",
        "Set scores to -inf where it is false."},
       {when(has_mask, "", [](Recipe* r) { r->ignores_mask = true; })}},
      {{"bias-missing", "bias not used", "What should be added to scores is not.", "Add it after scaling."},
       {when([](const Inputs& in) { return in.options.bias.has_value(); }, "",
             [](Recipe* r) { r->ignores_bias = true; })}},
      {{"mask-inverted", "true and false swapped",
        "The mask hides what it should show (PyTorch's modules and functions differ in this).",
        "Here true means: may attend. Invert the mask."},
       {when(has_mask, "the boolean mask", [](Recipe* r) { r->inverts_mask = true; })}},
      {{"mask-added", "boolean mask added as 0 and 1", "Visible keys get a score larger by 1; nothing is hidden.",
        "Select -inf where the mask is false."},
       {when(hides_some, "", [](Recipe* r) { r->hiding = Hiding::added; })}},
      {{"mask-weak", "a finite constant as mask",
        "A score below the constant beats it, and rows that see nothing average all values.",
        "Use -inf, and give rows that see nothing 0."},
       weak_forms()},
      {{"diagonal-masked", "a token may not see itself", "The causal mask is j < i; the first row sees nothing.",
        "Let row i see keys j <= i."},
       diagonal_forms()},
      {{"peek-one", "row i sees key i + 1", "The causal mask is shifted by one: every token sees the next.",
        "Let row i see keys j <= i."},
       {when(is_causal, "", [](Recipe* r) { r->causal = Causal::peek_one; })}},
      {{"anti-causal", "the wrong triangle", "Tokens see the future and not the past.",
        "Keep the lower triangle: j <= i."},
       {when(is_causal, "", [](Recipe* r) { r->causal = Causal::anti; })}},
      {{"causal-missing", "no causal mask", "Tokens see the future.", "Hide keys j > i."},
       {when(is_causal, "", [](Recipe* r) { r->causal = Causal::missing; })}},
      {{"causal-forced", "a causal mask that was not asked for", "Later keys are hidden.",
        "Leave the mask out where it is not wanted."},
       {when(is_not_causal, "from the upper left corner", [](Recipe* r) { r->causal = Causal::forced; }),
        when(is_not_causal, "from the lower right corner", [](Recipe* r) { r->causal = Causal::forced_bottom; })}},
      {{"causal-top-left", "causal mask aligned top-left",
        "The first query sits at the first key (PyTorch's is_causal).",
        "With a KV cache the last query sits at the last key: bottom-right."},
       {when(is_causal, "", [](Recipe* r) { r->causal = Causal::top_left; })}},
      {{"causal-bottom-right", "causal mask aligned bottom-right", "The last query sits at the last key.",
        "Align top-left, as was asked for."},
       {when(is_causal, "", [](Recipe* r) { r->causal = Causal::bottom_right; })}},
      {{"chunk-uncausal", "new tokens on a warm cache see each other",
        "The queries of one call see all keys of that call.", "Hide later tokens of the chunk, too."},
       {when(is_causal, "", [](Recipe* r) { r->causal = Causal::chunk_uncausal; })}},
      {{"padding-on-queries", "padding mask on the query axis",
        "Rows of padding are hidden and keys of padding are not.", "Hide keys: [B, 1, 1, M]."},
       {when(has_padding, "hidden rows are 0", [](Recipe* r) { r->padding_on_queries = true; }),
        when(has_padding, "hidden rows are NaN",
             [](Recipe* r) {
               r->padding_on_queries = true;
               r->empty_row_is_nan = true;
             }),
        when(has_padding, "hidden rows are the mean of the values",
             [](Recipe* r) {
               r->padding_on_queries = true;
               r->empty_row_means = true;
             })}},
      {{"mask-repeat-order", "mask repeated for heads in the wrong order",
        "Sequence b's heads get the masks of other sequences.",
        "Repeat each sequence's mask H times in a row (repeat_interleave)."},
       {when([](const Inputs& in) { return has_mask(in) || has_lengths(in); }, "",
             [](Recipe* r) { r->repeats_mask_by_head = true; })}},
      {{"window-missing", "window not used", "Queries see all that the other masks let them see.",
        "Hide keys j <= i - W."},
       {when(has_window, "", [](Recipe* r) { r->ignores_window = true; })}},
      {{"window-off-by-one", "window off by one", "A window of W keys has W + 1 or W - 1.",
        "W keys, itself included, are i - W < j <= i."},
       window_forms()},
      {{"window-two-sided", "window on both sides", "Keys after the query count to the window.",
        "Hide keys j > i, too."},
       {when(has_window, "",
             [](Recipe* r) {
               r->two_sided_window = true;
               r->causal = Causal::missing;
             })}},
      {{"softcap-missing", "softcap not used", "Scores are not capped.",
        "Use c·tanh(score/c), before bias and masks."},
       {when(has_cap, "", [](Recipe* r) { r->cap = Cap::missing; })}},
      {{"softcap-after-mask", "softcap after bias and mask",
        "The cap of -inf is -c, which is a score like any other.", "Cap first, then add the bias and mask."},
       {when(has_cap, "", [](Recipe* r) { r->cap = Cap::after_mask; })}},
      {{"softcap-form", "x·tanh(x/c) for c·tanh(x/c)", "The cap multiplies with the score, not with the constant.",
        "Use c·tanh(x/c)."},
       {when(has_cap, "", [](Recipe* r) { r->cap = Cap::times_tanh; })}},
      {{"sink-missing", "attention sink left out", "The learned logit takes no part in the softmax.",
        "Add e^(sink - max) to each row's sum."},
       {when(has_sinks, "", [](Recipe* r) { r->sinks = Sinks::missing; })}},
      {{"sink-per-tile", "sink counted once a tile", "The logit is added with every tile of keys.",
        "Add it once, at the end."},
       sink_tile_forms()},
      {{"sink-not-in-max", "sink not in the maximum",
        "e^(sink - max) overflows where the sink is much larger than all scores.",
        "Let the sink take part in the maximum."},
       {when(has_sinks, "in f32", [](Recipe* r) { r->sinks = Sinks::not_in_max; }), when(has_sinks, "in f16",
                                                                                         [](Recipe* r) {
                                                                                           r->sinks =
                                                                                               Sinks::not_in_max;
                                                                                           r->half_exponential =
                                                                                               true;
                                                                                         })}},
      {{"heads-time-mixed", "reshaped to [B, H, N, D] without a transpose",
        "Rows of tokens are cut into heads along the wrong axis.", "Reshape to [B, N, H, D], then swap N and H."},
       {inputs_form("q, k and v", swapped_inputs(true)),
        inputs_form("q alone", swapped_inputs(false)),
        {"q, k and v, and merged back the same way",
         [](const Inputs& in, Recipe* r) { return in.query.shape[1] > 1 && (r->merges_without_transpose = true); },
         swapped_inputs(true)}}},
      {{"merge-without-transpose", "heads merged without a transpose", "[B, H, N, D] is read as [B, N, H, D].",
        "Swap H and N before merging."},
       {when([](const Inputs& in) { return in.query.shape[1] > 1; }, "",
             [](Recipe* r) { r->merges_without_transpose = true; }),
        when([](const Inputs& in) { return in.query.shape[1] > 1; }, "the other way round",
             [](Recipe* r) { r->splits_without_transpose = true; })}},
      {{"layout-swapped", "sequence and head axes swapped", "Heads attend to heads, token by token.",
        "Pass [B, H, N, D], or say that it is [B, N, H, D]."},
       {when(swaps_axes, "", [](Recipe* r) { r->attends_across_heads = true; })}},
      {{"k-reshaped", "k reshaped where it should be transposed", "[M, D] is read as [D, M].",
        "Transpose the last two axes."},
       {inputs_form("", reshape_keys)}},
      {{"gqa-tiled", "head h reads kv head h mod Hkv", "Groups are dealt out in turn.",
        "Head h reads kv head h / (H / Hkv): repeat_interleave."},
       {when(is_grouped, "", [](Recipe* r) { r->groups = Groups::tiled; })}},
      {{"gqa-repeat-sequence", "kv heads repeated along the sequence",
        "Tokens are repeated, and the heads cut from them.", "Repeat along the head axis."},
       {when([](const Inputs& in) { return in.key.shape[1] < in.query.shape[1]; }, "",
             [](Recipe* r) { r->groups = Groups::repeat_sequence; })}},
      {{"qk-swapped", "q and k swapped", "Keys ask and queries answer.", "Scores are q·kᵀ."},
       {inputs_form("", swap_queries_and_keys)}},
      {{"k-as-v", "k where v should be", "Weights average keys.", "Multiply the weights with v."},
       {inputs_form("", use_keys_as_values)}},
      {{"v-as-k", "v where k should be", "Scores are q·vᵀ.", "Scores are q·kᵀ."},
       {inputs_form("", use_values_as_keys)}},
      {{"qkv-order", "q, k and v taken from the projection in another order",
        "The fused projection is cut in another order than it was trained.",
        "Look up the order: q k v, per head or per projection."},
       {around_form("q, v, k", Around::order_q_v_k), around_form("k, q, v", Around::order_k_q_v),
        around_form("v, q, k", Around::order_v_q_k), around_form("k, v, q", Around::order_k_v_q),
        around_form("v, k, q", Around::order_v_k_q),
        around_form("q, k and v of each head together", Around::order_by_head)}},
      {{"strides-ignored", "a view read as contiguous", "A transposed tensor's memory is read in its own order.",
        "Use the view's strides, or copy it first."},
       {around_form("of q, k and v", Around::strides_of_all), around_form("of q", Around::strides_of_q),
        around_form("of k", Around::strides_of_k), around_form("of v", Around::strides_of_v)}},
      {{"rope-layout", "interleaved pairs and half-split mixed up",
        "Rotary positions turn other pairs than in training.", "Take the layout of the model's own code."},
       {around_form("", Around::rope_other_layout)}},
      {{"rope-offset", "rotary positions shifted",
        "Decoding starts at position 0, doubles a position or is one too far.",
        "A new token's position is the cache's length."},
       {around_form("the new token at position 0", Around::rope_query_at_zero),
        around_form("positions doubled", Around::rope_doubled),
        around_form("queries one too far", Around::rope_one_late)}},
      {{"alibi-missing", "ALiBi not used", "Scores do not fall with the distance.", "Add -slope·|i - j|."},
       {when(has_alibi, "", [](Recipe* r) { r->ignores_alibi = true; })}},
      {{"alibi-slope", "ALiBi slopes off",
        "The exponent is off by one, or slopes of head counts that are no power of two are made as if they were.",
        "Slopes are 2^(-8h/H), h from 1; see the paper's code for other H."},
       {when(has_alibi, "slopes twice as large", [](Recipe* r) { r->alibi_exponent_off = 1; }),
        {"exponents count from 0",
         [](const Inputs& in, Recipe* r) {
           r->alibi_exponent_off = 8.0 / static_cast<double>(in.query.shape[1]);
           return has_alibi(in);
         }},
        when(has_alibi, "slopes half as large", [](Recipe* r) { r->alibi_exponent_off = -1; }),
        when(has_alibi, "slopes 2^(-8h/H) for any H", [](Recipe* r) { r->alibi_plain_slopes = true; })}},
      {{"dropout-at-eval", "dropout while evaluating",
        "Weights are dropped at random, and the others scaled by 1/(1 - p): two runs differ.",
        "Switch dropout off outside of training."},
       {}},
      {{"lse-base", "base-2 lse merged as natural",
        "Parts are weighed by 2^lse where e^lse is meant, or the other way round.",
        "Multiply base-2 log-sum-exps by ln 2."},
       {around_form("natural lse taken for base 2", Around::lse_base_2),
        around_form("natural lse multiplied by log2(e)", Around::lse_base_e)}},
      {{"lse-added", "lse of parts added", "Log-sum-exps of parts are added like sums.",
        "Merge them by log(e^a + e^b)."},
       {around_form("parts weighed by their lse", Around::lse_added),
        around_form("parts averaged", Around::parts_averaged)}},
      {{"dead-slots-leak", "what lies beyond the valid length takes part", "Padding or free cache slots are read.",
        "Hide keys beyond each sequence's length."},
       {when(has_lengths, "", [](Recipe* r) { r->ignores_lengths = true; })}},
      {{"empty-row-nan", "rows that see no key are NaN",
        "0 / 0 where a row is fully masked (PyTorch's plain path does this).", "Give such rows 0."},
       {recipe_form("", [](Recipe* r) { r->empty_row_is_nan = true; })}},
  };
}

}  // namespace

const std::vector<Entry>& catalogue() {
  static const std::vector<Entry> kCatalogue = make_catalogue();
  return kCatalogue;
}

const Entry& entry_of(const Mistake& mistake) {
  return *std::find_if(catalogue().begin(), catalogue().end(),
                       [&](const Entry& entry) { return entry.mistake.id == mistake.id; });
}

std::string joined_notes(const std::string& a, const std::string& b) {
  return a.empty() || b.empty() ? a + b : a + "; " + b;
}

}  // namespace attn::diagnose

namespace attn {

std::span<const Mistake> mistakes() {
  static const std::vector<Mistake> kMistakes = [] {
    std::vector<Mistake> all;
    for (const auto& entry : diagnose::catalogue()) all.push_back(entry.mistake);
    return all;
  }();
  return kMistakes;
}

const Mistake* find_mistake(std::string_view id) {
  for (const Mistake& mistake : mistakes()) {
    if (mistake.id == id) return &mistake;
  }
  return nullptr;
}

}  // namespace attn
