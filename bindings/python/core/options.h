// Keyword arguments as attn_options.
#pragma once

#include <vector>

#include "bindings/python/core/array.h"

namespace attn::python {

/// What every attending function takes, as the tuple that _options.py makes; None: all as by default.
class Options {
 public:
  /// `query_heads` gives the standard slopes of alibi=True.
  bool take(PyObject* tuple, int64_t query_heads);
  const attn_options* get() const { return &options_; }

 private:
  bool take_causal(PyObject* causal, PyObject* align);
  bool take_align(PyObject* align, const char* name);
  bool take_window(PyObject* window);
  bool take_alibi(PyObject* alibi, int64_t query_heads);
  bool take_lists(PyObject* tuple);
  bool take_threads(PyObject* threads);

  attn_options options_;
  OptionalArray mask_, bias_, alibi_, sinks_;
  std::vector<float> slopes_;
  attn_tensor slopes_tensor_{};
  std::vector<int64_t> offsets_, key_lengths_, query_lengths_, query_starts_, key_starts_;
};

/// Whole numbers: a list, a tuple, an array of integers.
bool take_numbers(PyObject* list, const char* name, std::vector<int64_t>* numbers);
bool take_number(PyObject* object, const char* name, int64_t* number);
bool take_real(PyObject* object, const char* name, double* number);
/// True or False, Python's or NumPy's. Other objects have a truth, too, but say it by mistake.
bool is_flag(PyObject* object);
bool take_flag(PyObject* object, const char* name, bool* flag);
/// The same for a place in a file system, as bytes.
bool take_path(PyObject* object, std::string* path);
bool take_text(PyObject* object, const char* name, std::string* text);

}  // namespace attn::python
