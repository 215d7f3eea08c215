// attention, weights, plan, merge and rotate, as the functions of Python's attn call them.
#include "bindings/python/core/functions.h"

namespace attn::python {
namespace {

// q, k and v of a call, and where they go.
struct Call {
  Array q, k, v;
  Options options;

  // Rows before heads, [B, S, H, D], where `swapped`.
  bool take(PyObject* query, PyObject* key, PyObject* value, bool swapped, PyObject* tuple) {
    if (!q.take(query, "q") || !k.take(key, "k") || (value && !v.take(value, "v"))) return false;
    if (swapped) {
      q.swap_heads_and_rows();
      k.swap_heads_and_rows();
      v.swap_heads_and_rows();
    }
    return options.take(tuple, q.rank() >= 3 ? q.size(q.rank() - 3) : 1);
  }
};

// The shape of q with another last dimension, or without one.
struct Shape {
  int64_t sizes[4];
  int rank;
};

Shape shape_of(const Array& q, int64_t last) {
  Shape shape{{}, q.rank()};
  for (int d = 0; d < q.rank(); ++d) shape.sizes[d] = q.size(d);
  if (q.rank() > 0) shape.sizes[q.rank() - 1] = last;
  return shape;
}

int32_t wide_dtype(const Array& q) { return q.tensor()->dtype == ATTN_F64 ? ATTN_F64 : ATTN_F32; }

// The last dimension; what has none the library will refuse.
int64_t last_of(const Array& array) { return array.rank() > 0 ? array.size(array.rank() - 1) : 0; }
int64_t rows_of(const Array& array) { return array.rank() > 1 ? array.size(array.rank() - 2) : 0; }

// Where `object` is None a new array, otherwise that.
bool make_or_take(PyObject* object, const char* name, PyObject* like, const Array& q, const Shape& shape,
                  int32_t dtype, Object* made, Array* array) {
  *made = given(object) ? Object::borrowed(object) : new_array(like, q, shape.sizes, shape.rank, dtype);
  return *made && array->take(made->get(), name, Access::write);
}

// Before outputs are made of the shapes: inputs that do not fit get the library's sentence, not NumPy's.
bool is_valid(const Call& call) {
  attn_plan_info unused;
  attn_plan_init(&unused, sizeof unused);
  return succeeded(attn_plan(call.q.tensor(), call.k.tensor(), call.v.tensor(), call.options.get(), &unused));
}

}  // namespace

// (q, k, v, out, return_lse, return_weights, swapped, options) -> out, or (out, lse, weights) with None for what was not asked for
PyObject* attention(PyObject* arguments) {
  PyObject* q = at(arguments, 0);
  const bool swapped = at(arguments, 6) == Py_True;
  Call call;
  if (!call.take(q, at(arguments, 1), at(arguments, 2), swapped, at(arguments, 7))) return nullptr;

  Shape out_shape = shape_of(call.q, last_of(call.v));
  if (swapped && out_shape.rank >= 3)
    std::swap(out_shape.sizes[out_shape.rank - 2], out_shape.sizes[out_shape.rank - 3]);
  if (call.q.rank() != call.v.rank() && !is_valid(call)) return nullptr;
  bool return_lse = false, return_weights = false;
  if (!take_flag(at(arguments, 4), "return_lse", &return_lse) ||
      !take_flag(at(arguments, 5), "return_weights", &return_weights))
    return nullptr;
  Object out, lse, weights;
  Array out_array, lse_array, weights_array;
  if (!make_or_take(at(arguments, 3), "out", q, call.q, out_shape, call.q.tensor()->dtype, &out, &out_array))
    return nullptr;
  if (swapped) out_array.swap_heads_and_rows();
  if (return_lse) {
    Shape shape = shape_of(call.q, 0);
    if (shape.rank > 0) --shape.rank;
    if (!make_or_take(Py_None, "lse", q, call.q, shape, wide_dtype(call.q), &lse, &lse_array)) return nullptr;
  }
  if (!succeeded(unlocked([&] {
        return attn_forward(call.q.tensor(), call.k.tensor(), call.v.tensor(), out_array.tensor(),
                            lse ? lse_array.tensor() : nullptr, call.options.get());
      })))
    return nullptr;
  if (return_weights) {
    const Shape shape = shape_of(call.q, rows_of(call.k));
    if (!make_or_take(Py_None, "weights", q, call.q, shape, wide_dtype(call.q), &weights, &weights_array))
      return nullptr;
    if (!succeeded(unlocked([&] {
          return attn_weights(call.q.tensor(), call.k.tensor(), weights_array.tensor(), call.options.get(), nullptr,
                              0, nullptr, 0);
        })))
      return nullptr;
  }
  if (!lse && !weights) return out.release();
  return PyTuple_Pack(3, out.get(), lse ? lse.get() : Py_None, weights ? weights.get() : Py_None);
}

// (q, k, rows, heads, swapped, options) -> weights
PyObject* weights(PyObject* arguments) {
  Call call;
  if (!call.take(at(arguments, 0), at(arguments, 1), nullptr, at(arguments, 4) == Py_True, at(arguments, 5)))
    return nullptr;
  std::vector<int64_t> rows, heads;
  const bool some_rows = given(at(arguments, 2)), some_heads = given(at(arguments, 3));
  if (some_rows && !take_numbers(at(arguments, 2), "rows", &rows)) return nullptr;
  if (some_heads && !take_numbers(at(arguments, 3), "heads", &heads)) return nullptr;
  if (some_rows && rows.empty()) return refuse(PyExc_ValueError, "rows: empty; name some, or None for all");
  if (some_heads && heads.empty()) return refuse(PyExc_ValueError, "heads: empty; name some, or None for all");
  Shape shape = shape_of(call.q, rows_of(call.k));
  if (some_rows && shape.rank >= 2) shape.sizes[shape.rank - 2] = static_cast<int64_t>(rows.size());
  if (some_heads && shape.rank >= 3) shape.sizes[shape.rank - 3] = static_cast<int64_t>(heads.size());
  Array array;
  Object made;
  if (!make_or_take(Py_None, "weights", at(arguments, 0), call.q, shape, wide_dtype(call.q), &made, &array))
    return nullptr;
  const int code = unlocked([&] {
    return attn_weights(call.q.tensor(), call.k.tensor(), array.tensor(), call.options.get(), rows.data(),
                        static_cast<int64_t>(rows.size()), heads.data(), static_cast<int64_t>(heads.size()));
  });
  return succeeded(code) ? made.release() : nullptr;
}

// (q, k, v, swapped, options) -> dict
PyObject* plan(PyObject* arguments) {
  Call call;
  if (!call.take(at(arguments, 0), at(arguments, 1), at(arguments, 2), at(arguments, 3) == Py_True,
                 at(arguments, 4)))
    return nullptr;
  attn_plan_info info;
  attn_plan_init(&info, sizeof info);
  if (!succeeded(attn_plan(call.q.tensor(), call.k.tensor(), call.v.tensor(), call.options.get(), &info)))
    return nullptr;
  const char* compute = info.compute == ATTN_F64 ? "float64" : "float32";
  return Py_BuildValue("{ss,ss,ss,si,sL,sL,sL,sL,sL,sL,sL,sd,sd,sd}", "path", info.path, "isa", info.isa, "compute",
                       compute, "threads", info.threads, "tasks", info.tasks, "query_tile_rows",
                       info.query_tile_rows, "key_block", info.key_block, "tiles_full", info.tiles_full,
                       "tiles_partial", info.tiles_partial, "tiles_skipped", info.tiles_skipped, "scratch_bytes",
                       info.scratch_bytes, "flops", info.flops, "bytes", info.bytes, "table_bytes",
                       info.table_bytes);
}

// (outs, lses) -> (out, lse)
PyObject* merge(PyObject* arguments) {
  const Object outs(PySequence_List(at(arguments, 0))), lses(PySequence_List(at(arguments, 1)));
  if (!outs || !lses) return nullptr;
  const Py_ssize_t count = PyList_Size(outs.get());
  if (count < 1 || PyList_Size(lses.get()) != count)
    return refuse(PyExc_ValueError, "outs: " + std::to_string(count) + ", and " +
                                        std::to_string(PyList_Size(lses.get())) +
                                        " lses; give one lse for each out, at least one");
  std::vector<Array> arrays(static_cast<std::size_t>(2 * count));
  std::vector<attn_tensor> parts, part_lses;
  for (Py_ssize_t i = 0; i < count; ++i) {
    Array& out = arrays[static_cast<std::size_t>(2 * i)];
    Array& lse = arrays[static_cast<std::size_t>(2 * i + 1)];
    if (!out.take(PyList_GetItem(outs.get(), i), "outs") || !lse.take(PyList_GetItem(lses.get(), i), "lses"))
      return nullptr;
    parts.push_back(*out.tensor());
    part_lses.push_back(*lse.tensor());
  }
  PyObject* like = PyList_GetItem(outs.get(), 0);
  const Array &first = arrays[0], &first_lse = arrays[1];
  Object out = new_array(like, first, first.tensor()->shape, first.rank(), first.tensor()->dtype);
  Object lse = new_array(like, first, first_lse.tensor()->shape, first_lse.rank(), first_lse.tensor()->dtype);
  Array out_array, lse_array;
  if (!out || !lse || !out_array.take(out.get(), "out", Access::write) ||
      !lse_array.take(lse.get(), "lse", Access::write))
    return nullptr;
  const int code = unlocked(
      [&] { return attn_merge(parts.data(), part_lses.data(), count, out_array.tensor(), lse_array.tensor()); });
  return succeeded(code) ? PyTuple_Pack(2, out.get(), lse.get()) : nullptr;
}

// (x, out, positions, interleaved, rotary_dim, base, scaling, factor, original_length) -> out
PyObject* rotate(PyObject* arguments) {
  Array x, out_array;
  if (!x.take(at(arguments, 0), "x")) return nullptr;
  std::vector<int64_t> positions;
  if (given(at(arguments, 2)) && !take_numbers(at(arguments, 2), "positions", &positions)) return nullptr;
  attn_rope_options options;
  attn_rope_options_init(&options, sizeof options);
  bool interleaved = false;
  if (!take_flag(at(arguments, 3), "interleaved", &interleaved)) return nullptr;
  options.layout = interleaved ? ATTN_ROPE_ADJACENT_PAIRS : ATTN_ROPE_HALF_SPLIT;
  std::string scaling;
  if (!take_number(at(arguments, 4), "rotary_dim", &options.rotary_dim) ||
      !take_real(at(arguments, 5), "base", &options.base) || !take_text(at(arguments, 6), "scaling", &scaling) ||
      !take_real(at(arguments, 7), "factor", &options.factor) ||
      !take_number(at(arguments, 8), "original_length", &options.original_length))
    return nullptr;
  constexpr const char* kScalings[] = {"none", "linear", "ntk", "yarn"};
  options.scaling = -1;
  for (int32_t n = 0; n < 4; ++n) {
    if (scaling == kScalings[n]) options.scaling = n;
  }
  if (options.scaling < 0)
    return refuse(PyExc_ValueError,
                  "scaling: \"" + scaling + "\" is none; give \"none\", \"linear\", \"ntk\" or \"yarn\"");
  Object out;
  const Shape shape = shape_of(x, last_of(x));
  if (!make_or_take(at(arguments, 1), "out", at(arguments, 0), x, shape, x.tensor()->dtype, &out, &out_array))
    return nullptr;
  const int code = unlocked([&] {
    return attn_rotate(x.tensor(), out_array.tensor(), positions.empty() ? nullptr : positions.data(),
                       static_cast<int64_t>(positions.size()), &options);
  });
  return succeeded(code) ? out.release() : nullptr;
}

}  // namespace attn::python
