// A small problem worked by hand: every intermediate number is kept, from tokens to outputs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "attn/options.h"
#include "attn/status.h"

namespace attn::reference {

/// Rows of equal length.
using Matrix = std::vector<std::vector<double>>;

/// A row of q, k or v that is put in place of what the projection gave.
struct Replacement {
  char matrix;  ///< 'q', 'k' or 'v'
  std::int64_t row;
  std::vector<double> values;
};

/// What to work out: one sequence, a row a token. Either x and its three matrices, or q, k and v.
struct Problem {
  std::vector<std::string> tokens;  ///< N names
  Matrix x;                         ///< [N, C]: one embedding a token; q = x·wq, k = x·wk, v = x·wv
  Matrix wq, wk;                    ///< [C, H·Dk]
  Matrix wv;                        ///< [C, H·Dv]
  Matrix q, k, v;                   ///< [N, H·Dk], [N, H·Dk], [N, H·Dv], instead of the above
  std::vector<Replacement> replaced;
  std::int64_t heads = 1;    ///< H: the columns of q, k and v are split into so many heads
  std::int64_t tile = 0;     ///< also work tile by tile, with so many keys a tile; 0: do not
  bool cache = false;        ///< also work token by token, as through a KV cache
  AttentionOptions options;  ///< without packed sequences; its views must outlive the call
};

/// What one query knows after a tile of keys (FlashAttention's running softmax).
struct Tile {
  std::vector<std::int64_t> keys;  ///< of this tile, those that the query sees
  double max = 0;                  ///< the largest score so far
  double rescale = 0;              ///< e^(old max − new max): what old sums are multiplied with; 0 at first
  std::vector<double> exps;        ///< e^(score − max) of `keys`
  double sum = 0;                  ///< Σ e^(score − max) so far
  std::vector<double> out;         ///< Σ e^(score − max) · value so far, not yet divided
};

/// One token's turn with a KV cache: its key and value are appended, then its query reads what the cache holds.
struct CacheStep {
  std::int64_t token = 0;
  std::vector<double> key, value;  ///< appended
  std::vector<std::int64_t> keys;  ///< that the query sees, of those in the cache
  std::vector<double> scores;      ///< of `keys`, finished
  std::vector<double> weights;     ///< of `keys`
  std::vector<double> out;
};

/// One head's numbers. Tables are [N, N]: rows are queries, columns are keys.
struct HeadTrace {
  Matrix q, k, v;
  Matrix scores;                         ///< q·k
  Matrix scaled;                         ///< × scale
  Matrix softcapped;                     ///< c·tanh(s/c); empty without softcap
  Matrix biased;                         ///< + bias + ALiBi; empty without either
  Matrix masked;                         ///< −∞ where the query may not look
  Matrix weights;                        ///< softmax of each row
  Matrix out;                            ///< weights·v, [N, Dv]
  std::vector<double> max;               ///< of each row, the sink included; −∞ where it sees nothing
  std::vector<double> lse;               ///< log Σ e^score of each row, the sink included
  std::vector<double> sink_weights;      ///< what each row gives to the sink; empty without sinks
  std::vector<std::vector<Tile>> tiles;  ///< for each query; tiles in which it sees no key are left out
  std::vector<CacheStep> steps;          ///< for each token; empty without `cache`
};

struct Trace {
  std::vector<std::string> tokens;
  Matrix x, wq, wk, wv;  ///< empty where the problem gave q, k and v
  Matrix q, k, v;        ///< all heads side by side, after replacements
  double scale = 1;
  std::vector<HeadTrace> heads;
  Matrix out;  ///< [N, H·Dv], heads side by side
};

/// Works the problem out in float64, by the recipe of attention(): the numbers are the judge's own.
/// Options are taken to be valid, as there. Errors: matrices that do not fit together, rows of different lengths, a
/// replacement that fits no row, columns that do not split into heads; with `cache`, a query that sees a later token.
Status trace(const Problem& problem, Trace* trace);

}  // namespace attn::reference
