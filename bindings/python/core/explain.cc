// explain and check: texts and verdicts.
#include "bindings/python/core/functions.h"

namespace attn::python {

// (q, k, v, x, wq, wk, wv, tokens, heads, tile, cache, mistake, format, options) -> text
PyObject* explain(PyObject* arguments) {
  constexpr const char* kNames[] = {"q", "k", "v", "x", "wq", "wk", "wv"};
  OptionalArray arrays[7];
  for (Py_ssize_t n = 0; n < 7; ++n) {
    if (!arrays[n].take(at(arguments, n), kNames[n])) return nullptr;
  }
  attn_explain_options explain_options;
  attn_explain_options_init(&explain_options, sizeof explain_options);
  explain_options.x = arrays[3].tensor();
  explain_options.wq = arrays[4].tensor();
  explain_options.wk = arrays[5].tensor();
  explain_options.wv = arrays[6].tensor();

  std::vector<std::string> texts;
  std::vector<const char*> tokens;
  if (given(at(arguments, 7))) {
    const Object list(PySequence_List(at(arguments, 7)));
    if (!list) return nullptr;
    for (Py_ssize_t i = 0; i < PyList_Size(list.get()); ++i) {
      texts.emplace_back();
      if (!take_text(PyList_GetItem(list.get(), i), "tokens", &texts.back())) return nullptr;
    }
    for (const std::string& text : texts) tokens.push_back(text.c_str());
    const attn_tensor* rows = arrays[0].tensor() ? arrays[0].tensor() : explain_options.x;
    const int64_t count = rows && rows->rank >= 2 ? rows->shape[rows->rank - 2] : 0;
    if (count != static_cast<int64_t>(tokens.size()))
      return refuse(PyExc_ValueError, "tokens: " + std::to_string(tokens.size()) + " names for " +
                                          std::to_string(count) + " rows; give one for each");
    explain_options.tokens = tokens.data();
  }
  std::string mistake, format;
  int64_t heads = 1;
  if (!take_number(at(arguments, 8), "heads", &heads) ||
      !take_number(at(arguments, 9), "tile", &explain_options.tile))
    return nullptr;
  explain_options.heads = heads;
  bool cache = false;
  if (!take_flag(at(arguments, 10), "cache", &cache)) return nullptr;
  explain_options.cache = cache;
  if (given(at(arguments, 11))) {
    if (!take_text(at(arguments, 11), "mistake", &mistake)) return nullptr;
    explain_options.mistake = mistake.c_str();
  }
  if (!take_text(at(arguments, 12), "format", &format)) return nullptr;
  explain_options.format = format.c_str();

  const attn_tensor* q = arrays[0].tensor();
  const int64_t query_heads = !q ? heads : q->rank >= 3 ? q->shape[q->rank - 3] : 1;
  Options options;
  attn_text* text = nullptr;
  if (!options.take(at(arguments, 13), query_heads)) return nullptr;
  if (!succeeded(unlocked([&] {
        return attn_explain(q, arrays[1].tensor(), arrays[2].tensor(), options.get(), &explain_options, &text);
      })))
    return nullptr;
  PyObject* result =
      PyUnicode_DecodeUTF8(attn_text_data(text), static_cast<Py_ssize_t>(attn_text_size(text)), "replace");
  attn_text_destroy(text);
  return result;
}

// (q, k, v, theirs, weights, lse, tolerance, swapped, options) -> (text, json)
PyObject* check(PyObject* arguments) {
  Array q, k, v, theirs;
  OptionalArray weights, lse;
  if (!q.take(at(arguments, 0), "q") || !k.take(at(arguments, 1), "k") || !v.take(at(arguments, 2), "v") ||
      !theirs.take(at(arguments, 3), "theirs") || !weights.take(at(arguments, 4), "weights") ||
      !lse.take(at(arguments, 5), "lse"))
    return nullptr;
  if (at(arguments, 7) == Py_True) {
    for (Array* array : {&q, &k, &v, &theirs}) array->swap_heads_and_rows();
  }
  attn_check_options check_options;
  attn_check_options_init(&check_options, sizeof check_options);
  check_options.weights = weights.tensor();
  check_options.lse = lse.tensor();
  if (given(at(arguments, 6)) && !take_real(at(arguments, 6), "tolerance", &check_options.tolerance))
    return nullptr;
  Options options;
  if (!options.take(at(arguments, 8), q.rank() >= 3 ? q.size(q.rank() - 3) : 1)) return nullptr;
  attn_diagnosis* diagnosis = nullptr;
  if (!succeeded(unlocked([&] {
        return attn_check(q.tensor(), k.tensor(), v.tensor(), theirs.tensor(), options.get(), &check_options,
                          &diagnosis);
      })))
    return nullptr;
  PyObject* result = Py_BuildValue("ss", attn_diagnosis_text(diagnosis), attn_diagnosis_json(diagnosis));
  attn_diagnosis_destroy(diagnosis);
  return result;
}

}  // namespace attn::python
