// Python objects that are given back by themselves, and the library's errors as Python's.
#pragma once

// What Python 3.9 has: one binary serves it and all later ones (PEP 384).
#define Py_LIMITED_API 0x03090000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <exception>
#include <new>
#include <string>
#include <utility>

#include "attn/attn_c.h"

namespace attn::python {

/// Owns a reference, or nothing.
class Object {
 public:
  Object() = default;
  explicit Object(PyObject* owned) : object_(owned) {}
  Object(Object&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Object& operator=(Object&& other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Object() { Py_XDECREF(object_); }

  static Object borrowed(PyObject* object) {
    Py_XINCREF(object);
    return Object(object);
  }

  PyObject* get() const { return object_; }
  PyObject* release() { return std::exchange(object_, nullptr); }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  PyObject* object_ = nullptr;
};

inline bool given(PyObject* object) { return object && object != Py_None; }

/// Sets a Python exception; false, so that it can be returned.
inline bool fail(PyObject* exception, const std::string& sentence) {
  PyErr_SetString(exception, sentence.c_str());
  return false;
}

/// The same for functions that return an object.
inline PyObject* refuse(PyObject* exception, const std::string& sentence) {
  fail(exception, sentence);
  return nullptr;
}

/// Takes back an exception that says "this is not what I expected"; what a user's own code raised stays. Whether it did.
inline bool took_back() {
  for (PyObject* expected : {PyExc_TypeError, PyExc_OverflowError, PyExc_UnicodeError}) {
    if (!PyErr_ExceptionMatches(expected)) continue;
    PyErr_Clear();
    return true;
  }
  return false;
}

/// The library's sentence as an exception, where a call did not end well.
inline bool succeeded(int code) {
  if (code == ATTN_OK) return true;
  return fail(code == ATTN_OUT_OF_MEMORY ? PyExc_MemoryError : PyExc_ValueError, attn_message());
}

/// The characters of a str; false, without an exception, for anything else.
inline bool read_text(PyObject* object, std::string* text) {
  const Object bytes(object && PyUnicode_Check(object) ? PyUnicode_AsUTF8String(object) : nullptr);
  if (!bytes) PyErr_Clear();
  if (bytes)
    *text = std::string(PyBytes_AsString(bytes.get()), static_cast<std::size_t>(PyBytes_Size(bytes.get())));
  return static_cast<bool>(bytes);
}

/// Runs `call` while other Python threads may run.
template <class Call>
int unlocked(const Call& call) {
  PyThreadState* state = PyEval_SaveThread();
  const int code = call();
  PyEval_RestoreThread(state);
  return code;
}

/// A function as Python calls it: `body` gets the tuple of arguments. Memory that can't be had becomes MemoryError.
template <PyObject* (*body)(PyObject* arguments)>
PyObject* function(PyObject* /*module*/, PyObject* arguments) {
  try {
    return body(arguments);
  } catch (const std::bad_alloc&) {
    return PyErr_NoMemory();
  } catch (const std::exception& error) {
    return refuse(PyExc_RuntimeError, error.what());
  }
}

/// The argument at `index`; wrappers in Python always give all of them.
inline PyObject* at(PyObject* arguments, Py_ssize_t index) { return PyTuple_GetItem(arguments, index); }

inline PyObject* none() {
  Py_INCREF(Py_None);
  return Py_None;
}

}  // namespace attn::python
