// KV caches: a capsule holds one, and functions take it first. The class in _cache.py keeps threads apart.
#include "bindings/python/core/functions.h"

namespace attn::python {
namespace {

constexpr const char* kCapsule = "attn_cache";
constexpr const char* kTypes[] = {"f32", "bf16", "f16", "q8"};

attn_cache* cache_of(PyObject* arguments) {
  return static_cast<attn_cache*>(PyCapsule_GetPointer(at(arguments, 0), kCapsule));
}

void destroy(PyObject* capsule) {
  attn_cache_destroy(static_cast<attn_cache*>(PyCapsule_GetPointer(capsule, kCapsule)));
}

PyObject* capsule_of(attn_cache* cache) { return PyCapsule_New(cache, kCapsule, destroy); }

PyObject* none_or_error(int code) { return succeeded(code) ? none() : nullptr; }

}  // namespace

// (kv_heads, key_dim, value_dim, type, page_tokens, most_bytes) -> capsule
PyObject* cache_create(PyObject* arguments) {
  attn_cache_options options;
  attn_cache_options_init(&options, sizeof options);
  std::string type;
  if (!take_number(at(arguments, 0), "kv_heads", &options.kv_heads) ||
      !take_number(at(arguments, 1), "key_dim", &options.key_dim) ||
      !take_number(at(arguments, 2), "value_dim", &options.value_dim) ||
      !take_text(at(arguments, 3), "type", &type) ||
      !take_number(at(arguments, 4), "page_tokens", &options.page_tokens))
    return nullptr;
  if (given(at(arguments, 5)) && !take_number(at(arguments, 5), "most_bytes", &options.most_bytes)) return nullptr;
  options.type = -1;
  for (int32_t n = 0; n < 4; ++n) {
    if (type == kTypes[n]) options.type = n;
  }
  if (options.type < 0)
    return refuse(PyExc_ValueError, "type: \"" + type + "\" is none; give \"f32\", \"bf16\", \"f16\" or \"q8\"");
  attn_cache* cache = nullptr;
  return succeeded(attn_cache_create(&options, &cache)) ? capsule_of(cache) : nullptr;
}

// (cache) -> dict
PyObject* cache_options(PyObject* arguments) {
  const attn_cache* cache = cache_of(arguments);
  attn_cache_options options{};
  options.size = sizeof options;
  if (!cache || !succeeded(attn_cache_get_options(cache, &options))) return nullptr;
  return Py_BuildValue("{sL,sL,sL,ss,sL}", "kv_heads", options.kv_heads, "key_dim", options.key_dim, "value_dim",
                       options.value_dim, "type", kTypes[options.type], "page_tokens", options.page_tokens);
}

// (path, most_bytes) -> capsule
PyObject* cache_load(PyObject* arguments) {
  std::string path;
  int64_t most_bytes = -1;
  attn_cache* cache = nullptr;
  if (!take_path(at(arguments, 0), &path)) return nullptr;
  if (given(at(arguments, 1)) && !take_number(at(arguments, 1), "most_bytes", &most_bytes)) return nullptr;
  return succeeded(unlocked([&] { return attn_cache_load(path.c_str(), most_bytes, &cache); })) ? capsule_of(cache)
                                                                                                : nullptr;
}

// (cache, path)
PyObject* cache_save(PyObject* arguments) {
  attn_cache* cache = cache_of(arguments);
  std::string path;
  if (!cache || !take_path(at(arguments, 1), &path)) return nullptr;
  return none_or_error(unlocked([&] { return attn_cache_save(cache, path.c_str()); }));
}

// (cache) -> sequence
PyObject* cache_add_sequence(PyObject* arguments) {
  attn_cache* cache = cache_of(arguments);
  int64_t sequence = 0;
  return cache && succeeded(attn_cache_add_sequence(cache, &sequence)) ? PyLong_FromLongLong(sequence) : nullptr;
}

// (cache, sequences, k, v, starts)
PyObject* cache_append(PyObject* arguments) {
  attn_cache* cache = cache_of(arguments);
  std::vector<int64_t> sequences, starts;
  Array k, v;
  if (!cache || !take_numbers(at(arguments, 1), "sequences", &sequences) || !k.take(at(arguments, 2), "k") ||
      !v.take(at(arguments, 3), "v"))
    return nullptr;
  const bool packed = given(at(arguments, 4));
  if (packed && !take_numbers(at(arguments, 4), "starts", &starts)) return nullptr;
  if (packed && starts.size() != sequences.size() + 1)
    return refuse(PyExc_ValueError, "starts: " + std::to_string(starts.size()) + " numbers for " +
                                        std::to_string(sequences.size()) +
                                        " sequences; give one more than sequences");
  return none_or_error(unlocked([&] {
    return attn_cache_append(cache, sequences.data(), static_cast<int64_t>(sequences.size()), k.tensor(),
                             v.tensor(), packed ? starts.data() : nullptr);
  }));
}

// (cache, sequences, q, out, lse, value_dim, options) -> out, or (out, lse)
PyObject* cache_attend(PyObject* arguments) {
  const attn_cache* cache = cache_of(arguments);
  std::vector<int64_t> sequences;
  Array q, out_array, lse_array;
  PyObject* query = at(arguments, 2);
  int64_t value_dim = 0;
  if (!cache || !take_numbers(at(arguments, 1), "sequences", &sequences) || !q.take(query, "q") ||
      !take_number(at(arguments, 5), "value_dim", &value_dim))
    return nullptr;
  Options options;
  if (!options.take(at(arguments, 6), q.rank() >= 3 ? q.size(q.rank() - 3) : 1)) return nullptr;
  if (q.rank() < 1) return refuse(PyExc_ValueError, "q: no dimensions; give [heads, tokens, head dim]");
  int64_t shape[4];
  for (int d = 0; d < q.rank(); ++d) shape[d] = q.size(d);
  shape[q.rank() - 1] = value_dim;
  Object out = given(at(arguments, 3)) ? Object::borrowed(at(arguments, 3))
                                       : new_array(query, q, shape, q.rank(), q.tensor()->dtype);
  if (!out || !out_array.take(out.get(), "out", Access::write)) return nullptr;
  Object lse;
  bool return_lse = false;
  if (!take_flag(at(arguments, 4), "return_lse", &return_lse)) return nullptr;
  if (return_lse) {
    lse = new_array(query, q, shape, q.rank() - 1, ATTN_F32);
    if (!lse || !lse_array.take(lse.get(), "lse", Access::write)) return nullptr;
  }
  if (!succeeded(unlocked([&] {
        return attn_cache_attend(cache, sequences.data(), static_cast<int64_t>(sequences.size()), q.tensor(),
                                 out_array.tensor(), lse ? lse_array.tensor() : nullptr, options.get());
      })))
    return nullptr;
  return lse ? PyTuple_Pack(2, out.get(), lse.get()) : out.release();
}

// (cache, sequence) -> copy
PyObject* cache_fork(PyObject* arguments) {
  attn_cache* cache = cache_of(arguments);
  int64_t sequence = 0, copy = 0;
  if (!cache || !take_number(at(arguments, 1), "sequence", &sequence)) return nullptr;
  return succeeded(attn_cache_fork(cache, sequence, &copy)) ? PyLong_FromLongLong(copy) : nullptr;
}

// (cache, sequence, tokens)
PyObject* cache_truncate(PyObject* arguments) {
  attn_cache* cache = cache_of(arguments);
  int64_t sequence = 0, tokens = 0;
  if (!cache || !take_number(at(arguments, 1), "sequence", &sequence) ||
      !take_number(at(arguments, 2), "tokens", &tokens))
    return nullptr;
  return none_or_error(attn_cache_truncate(cache, sequence, tokens));
}

// (cache, sequence, position, sink_tokens)
PyObject* cache_drop_before(PyObject* arguments) {
  attn_cache* cache = cache_of(arguments);
  int64_t sequence = 0, position = 0, sink_tokens = 0;
  if (!cache || !take_number(at(arguments, 1), "sequence", &sequence) ||
      !take_number(at(arguments, 2), "position", &position) ||
      !take_number(at(arguments, 3), "sink_tokens", &sink_tokens))
    return nullptr;
  return none_or_error(attn_cache_drop_before(cache, sequence, position, sink_tokens));
}

// (cache, sequence)
PyObject* cache_release(PyObject* arguments) {
  attn_cache* cache = cache_of(arguments);
  int64_t sequence = 0;
  if (!cache || !take_number(at(arguments, 1), "sequence", &sequence)) return nullptr;
  return none_or_error(attn_cache_release(cache, sequence));
}

// (cache, sequence) -> tokens; -1 where there is no such sequence
PyObject* cache_length(PyObject* arguments) {
  const attn_cache* cache = cache_of(arguments);
  int64_t sequence = 0;
  if (!cache || !take_number(at(arguments, 1), "sequence", &sequence)) return nullptr;
  return PyLong_FromLongLong(attn_cache_length(cache, sequence));
}

// (cache, tokens)
PyObject* cache_reserve(PyObject* arguments) {
  attn_cache* cache = cache_of(arguments);
  int64_t tokens = 0;
  if (!cache || !take_number(at(arguments, 1), "tokens", &tokens)) return nullptr;
  return none_or_error(attn_cache_reserve(cache, tokens));
}

// (cache) -> dict
PyObject* cache_usage(PyObject* arguments) {
  const attn_cache* cache = cache_of(arguments);
  attn_cache_usage_info usage{};
  usage.size = sizeof usage;
  if (!cache || !succeeded(attn_cache_usage(cache, &usage))) return nullptr;
  return Py_BuildValue("{sL,sL,sL,sL,sL,sL}", "page_bytes", usage.page_bytes, "pages", usage.pages, "pages_in_use",
                       usage.pages_in_use, "sequences", usage.sequences, "tokens", usage.tokens, "bytes",
                       attn_cache_bytes(cache));
}

}  // namespace attn::python
