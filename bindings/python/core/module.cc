// attn._core: the C interface for Python, for the package attn alone.
#include "bindings/python/core/functions.h"

namespace attn::python {
namespace {

PyObject* version(PyObject* /*arguments*/) { return PyUnicode_FromString(attn_version()); }
PyObject* isa(PyObject* /*arguments*/) { return PyUnicode_FromString(attn_isa()); }
PyObject* isas(PyObject* /*arguments*/) { return PyUnicode_FromString(attn_isas()); }
PyObject* mistakes(PyObject* /*arguments*/) { return PyUnicode_FromString(attn_mistakes()); }

PyObject* force_isa(PyObject* arguments) {
  std::string name;
  if (!take_text(at(arguments, 0), "name", &name)) return nullptr;
  return succeeded(attn_force_isa(name.c_str())) ? none() : nullptr;
}

PyObject* use_allocator(PyObject* arguments) {
  set_allocator(Object::borrowed(at(arguments, 0)).release());
  return none();
}

PyMethodDef methods[] = {
    {"version", function<version>, METH_VARARGS, nullptr},
    {"isa", function<isa>, METH_VARARGS, nullptr},
    {"isas", function<isas>, METH_VARARGS, nullptr},
    {"force_isa", function<force_isa>, METH_VARARGS, nullptr},
    {"mistakes", function<mistakes>, METH_VARARGS, nullptr},
    {"use_allocator", function<use_allocator>, METH_VARARGS, nullptr},
    {"attention", function<attention>, METH_VARARGS, nullptr},
    {"weights", function<weights>, METH_VARARGS, nullptr},
    {"plan", function<plan>, METH_VARARGS, nullptr},
    {"merge", function<merge>, METH_VARARGS, nullptr},
    {"rotate", function<rotate>, METH_VARARGS, nullptr},
    {"explain", function<explain>, METH_VARARGS, nullptr},
    {"check", function<check>, METH_VARARGS, nullptr},
    {"cache_create", function<cache_create>, METH_VARARGS, nullptr},
    {"cache_options", function<cache_options>, METH_VARARGS, nullptr},
    {"cache_load", function<cache_load>, METH_VARARGS, nullptr},
    {"cache_save", function<cache_save>, METH_VARARGS, nullptr},
    {"cache_add_sequence", function<cache_add_sequence>, METH_VARARGS, nullptr},
    {"cache_append", function<cache_append>, METH_VARARGS, nullptr},
    {"cache_attend", function<cache_attend>, METH_VARARGS, nullptr},
    {"cache_fork", function<cache_fork>, METH_VARARGS, nullptr},
    {"cache_truncate", function<cache_truncate>, METH_VARARGS, nullptr},
    {"cache_drop_before", function<cache_drop_before>, METH_VARARGS, nullptr},
    {"cache_release", function<cache_release>, METH_VARARGS, nullptr},
    {"cache_length", function<cache_length>, METH_VARARGS, nullptr},
    {"cache_reserve", function<cache_reserve>, METH_VARARGS, nullptr},
    {"cache_usage", function<cache_usage>, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_core", nullptr, -1, methods, nullptr, nullptr, nullptr, nullptr,
};

}  // namespace
}  // namespace attn::python

// The name is what Python looks for. NOLINTNEXTLINE(bugprone-reserved-identifier)
PyMODINIT_FUNC PyInit__core() { return PyModule_Create(&attn::python::definition); }
