#include "bindings/python/core/options.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <thread>

namespace attn::python {
namespace {

constexpr int64_t kMostThreads = 1024, kMostHeads = 1 << 20;

// The order of _options.py.
enum Place : Py_ssize_t {
  kCausal,
  kAlign,
  kWindow,
  kSinkTokens,
  kMask,
  kBias,
  kAlibi,
  kSinks,
  kScale,
  kSoftcap,
  kKeyLengths,
  kQueryLengths,
  kQueryStarts,
  kKeyStarts,
  kKeyOffset,
  kBf16Products,
  kThreads,
};

bool named_alignment(const std::string& text, int32_t* alignment) {
  if (text == "top-left") *alignment = ATTN_TOP_LEFT;
  if (text == "bottom-right") *alignment = ATTN_BOTTOM_RIGHT;
  return text == "top-left" || text == "bottom-right";
}

// Arrays of NumPy and torch have __index__ as well, for those of one element.
bool is_number(PyObject* object) { return PyIndex_Check(object) && !PySequence_Check(object) && !is_flag(object); }

// A number of keys, or None for no bound.
bool take_reach(PyObject* object, int64_t* reach) {
  if (!given(object)) return true;
  if (!take_number(object, "window", reach)) return false;
  return *reach >= 0 || fail(PyExc_ValueError, "window: " + std::to_string(*reach) +
                                                   " is below 0; give a number of keys, or None for no bound");
}

// One pool for each number of threads up to that of processors, made when first asked for; they live as long as the program.
const attn_executor* pool_of(int32_t threads) {
  threads = std::min(threads, std::max(1, static_cast<int32_t>(std::thread::hardware_concurrency())));
  static std::mutex mutex;
  static auto& pools = *new std::map<int32_t, attn_pool*>;
  const std::lock_guard<std::mutex> lock(mutex);
  attn_pool*& pool = pools[threads];
  if (!pool && !succeeded(attn_pool_create(threads, &pool))) return nullptr;
  return attn_pool_executor(pool);
}

}  // namespace

bool is_flag(PyObject* object) {
  static PyObject* const numpy_bool = [] {
    const Object numpy(PyImport_ImportModule("numpy"));
    return numpy ? PyObject_GetAttrString(numpy.get(), "bool_") : nullptr;
  }();
  return PyBool_Check(object) || (numpy_bool && PyObject_IsInstance(object, numpy_bool) == 1);
}

bool take_flag(PyObject* object, const char* name, bool* flag) {
  if (!is_flag(object))
    return fail(PyExc_TypeError, std::string(name) + ": neither True nor False; give one of them");
  *flag = PyObject_IsTrue(object) == 1;
  return true;
}

bool take_number(PyObject* object, const char* name, int64_t* number) {
  const Object index(is_flag(object) ? nullptr : PyNumber_Index(object));
  if (index) *number = PyLong_AsLongLong(index.get());
  if (index && !PyErr_Occurred()) return true;
  const bool too_large = index.get() != nullptr;
  if (PyErr_Occurred() && !took_back()) return false;
  return too_large ? fail(PyExc_ValueError, std::string(name) + ": does not fit 64 bits")
                   : fail(PyExc_TypeError, std::string(name) + ": no whole number; give one");
}

bool take_real(PyObject* object, const char* name, double* number) {
  if (is_flag(object)) return fail(PyExc_TypeError, std::string(name) + ": no number; give one");
  *number = PyFloat_AsDouble(object);
  if (!PyErr_Occurred()) return true;
  return took_back() && fail(PyExc_TypeError, std::string(name) + ": no number that fits 64 bits; give one");
}

bool take_text(PyObject* object, const char* name, std::string* text) {
  if (!read_text(object, text)) return fail(PyExc_TypeError, std::string(name) + ": no text; give a str");
  return text->find('\0') == std::string::npos ||
         fail(PyExc_ValueError, std::string(name) + ": has a zero byte in it");
}

bool take_path(PyObject* object, std::string* path) {
  PyObject* converted = nullptr;
  if (!PyUnicode_FSConverter(object, &converted)) return false;
  const Object bytes(converted);
  *path = std::string(PyBytes_AsString(bytes.get()), static_cast<std::size_t>(PyBytes_Size(bytes.get())));
  return true;
}

bool take_numbers(PyObject* list, const char* name, std::vector<int64_t>* numbers) {
  numbers->clear();
  const Object items(PySequence_List(list));
  if (!items)
    return took_back() && fail(PyExc_TypeError, std::string(name) + ": no list of whole numbers; give one");
  for (Py_ssize_t i = 0; i < PyList_Size(items.get()); ++i) {
    numbers->push_back(0);
    if (!take_number(PyList_GetItem(items.get(), i), name, &numbers->back())) return false;
  }
  return !numbers->empty() || fail(PyExc_ValueError, std::string(name) + ": empty; leave it out for none");
}

bool Options::take(PyObject* tuple, int64_t query_heads) {
  attn_options_init(&options_, sizeof options_);
  if (!given(tuple)) return true;
  if (!take_causal(at(tuple, kCausal), at(tuple, kAlign)) || !take_window(at(tuple, kWindow))) return false;
  if (!take_number(at(tuple, kSinkTokens), "sink_tokens", &options_.sink_tokens)) return false;
  if (!mask_.take(at(tuple, kMask), "mask") || !bias_.take(at(tuple, kBias), "bias")) return false;
  if (!take_alibi(at(tuple, kAlibi), query_heads) || !sinks_.take(at(tuple, kSinks), "sinks")) return false;
  options_.mask = mask_.tensor();
  options_.bias = bias_.tensor();
  options_.sinks = sinks_.tensor();
  if (given(at(tuple, kScale)) && !take_real(at(tuple, kScale), "scale", &options_.scale)) return false;
  if (given(at(tuple, kScale)) && options_.scale != options_.scale)
    return fail(PyExc_ValueError, "scale: is NaN; give a finite number");
  if (given(at(tuple, kSoftcap))) {
    if (!take_real(at(tuple, kSoftcap), "softcap", &options_.softcap)) return false;
    if (options_.softcap == 0) return fail(PyExc_ValueError, "softcap: 0 is not above 0; leave it out for none");
  }
  if (!take_number(at(tuple, kKeyOffset), "key_offset", &options_.key_offset)) return false;
  bool bf16_products = false;
  if (!take_lists(tuple) || !take_flag(at(tuple, kBf16Products), "bf16_products", &bf16_products)) return false;
  options_.bf16_products = bf16_products;
  return take_threads(at(tuple, kThreads));
}

// causal is False, True, or where queries sit; align says so for windows and ALiBi, too. Numbers are align's alone: 0 and 1
// would pass for False and True.
bool Options::take_causal(PyObject* causal, PyObject* align) {
  if (!PyUnicode_Check(causal)) {
    bool flag = false;
    if (!is_flag(causal))
      return fail(PyExc_TypeError,
                  "causal: neither True, False, \"top-left\" nor \"bottom-right\"; for an offset give causal=True "
                  "and align");
    if (!take_flag(causal, "causal", &flag)) return false;
    options_.causal = flag;
    return take_align(align, "align");
  }
  options_.causal = 1;
  if (given(align))
    return fail(PyExc_ValueError, "align: given, but causal says already where queries sit; give one of the two");
  return take_align(causal, "causal");
}

bool Options::take_align(PyObject* align, const char* name) {
  if (!given(align)) return true;
  if (PyUnicode_Check(align)) {
    std::string text;
    if (!take_text(align, name, &text)) return false;
    return named_alignment(text, &options_.alignment) ||
           fail(PyExc_ValueError, std::string(name) + ": \"" + text +
                                      "\" is no alignment; give \"top-left\" (the first query at the first key), "
                                      "\"bottom-right\" (the last at the last) or a whole number");
  }
  options_.alignment = ATTN_OFFSET;
  if (is_number(align)) return take_number(align, name, &options_.position_offset);
  if (!take_numbers(align, name, &offsets_)) return false;
  options_.position_offsets = offsets_.data();
  options_.sequences = static_cast<int64_t>(offsets_.size());
  return true;
}

bool Options::take_window(PyObject* window) {
  if (!given(window)) return true;
  if (is_number(window)) return take_reach(window, &options_.window_left);
  const Object pair(PySequence_List(window));
  if (!pair && !took_back()) return false;
  if (!pair || PyList_Size(pair.get()) != 2) {
    return fail(PyExc_TypeError, "window: neither a number of keys nor a pair (left, right); give one of them");
  }
  return take_reach(PyList_GetItem(pair.get(), 0), &options_.window_left) &&
         take_reach(PyList_GetItem(pair.get(), 1), &options_.window_right);
}

// True: the standard slopes.
bool Options::take_alibi(PyObject* alibi, int64_t query_heads) {
  bool standard = false;
  if (!given(alibi) || (is_flag(alibi) && take_flag(alibi, "alibi", &standard) && !standard)) return true;
  if (!standard) {
    if (!alibi_.take(alibi, "alibi")) return false;
    options_.alibi = alibi_.tensor();
    return true;
  }
  if (query_heads < 0 || query_heads > kMostHeads)
    return fail(PyExc_ValueError,
                "heads: " + std::to_string(query_heads) + "; slopes are given for at most 1048576");
  slopes_.resize(static_cast<std::size_t>(query_heads));
  if (!succeeded(attn_alibi_slopes(static_cast<int32_t>(query_heads), slopes_.data()))) return false;
  slopes_tensor_ = attn_contiguous(slopes_.data(), ATTN_F32, 1, &query_heads);
  options_.alibi = &slopes_tensor_;
  return true;
}

bool Options::take_lists(PyObject* tuple) {
  struct List {
    Place place;
    const char* name;
    std::vector<int64_t>* numbers;
    const int64_t** to;
    int64_t more_than_sequences;  // starts are one more
  };
  for (const List& list : {List{kKeyLengths, "key_lengths", &key_lengths_, &options_.key_lengths, 0},
                           {kQueryLengths, "query_lengths", &query_lengths_, &options_.query_lengths, 0},
                           {kQueryStarts, "query_starts", &query_starts_, &options_.query_starts, 1},
                           {kKeyStarts, "key_starts", &key_starts_, &options_.key_starts, 1}}) {
    PyObject* object = at(tuple, list.place);
    if (!given(object)) continue;
    if (!take_numbers(object, list.name, list.numbers)) return false;
    const int64_t sequences = static_cast<int64_t>(list.numbers->size()) - list.more_than_sequences;
    if (sequences < 0) return fail(PyExc_ValueError, std::string(list.name) + ": empty; it begins with 0");
    if (options_.sequences != 0 && options_.sequences != sequences)
      return fail(PyExc_ValueError, std::string(list.name) + ": for " + std::to_string(sequences) +
                                        " sequences, but another list is for " +
                                        std::to_string(options_.sequences) + "; make them the same");
    options_.sequences = sequences;
    *list.to = list.numbers->data();
  }
  return true;
}

bool Options::take_threads(PyObject* threads) {
  if (!given(threads)) return true;
  int64_t number = 0;
  if (!take_number(threads, "threads", &number)) return false;
  if (number < 1 || number > kMostThreads)
    return fail(PyExc_ValueError, "threads: " + std::to_string(number) + "; give from 1 to 1024");
  options_.executor = number == 1 ? attn_inline_executor() : pool_of(static_cast<int32_t>(number));
  return options_.executor != nullptr;
}

}  // namespace attn::python
