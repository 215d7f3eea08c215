// The functions of attn._core: each takes a tuple whose places its comment tells; wrappers in Python fill all of them.
#pragma once

#include "bindings/python/core/array.h"
#include "bindings/python/core/options.h"

namespace attn::python {

PyObject* attention(PyObject* arguments);
PyObject* weights(PyObject* arguments);
PyObject* plan(PyObject* arguments);
PyObject* merge(PyObject* arguments);
PyObject* rotate(PyObject* arguments);
PyObject* explain(PyObject* arguments);
PyObject* check(PyObject* arguments);
PyObject* cache_create(PyObject* arguments);
PyObject* cache_options(PyObject* arguments);
PyObject* cache_load(PyObject* arguments);
PyObject* cache_save(PyObject* arguments);
PyObject* cache_add_sequence(PyObject* arguments);
PyObject* cache_append(PyObject* arguments);
PyObject* cache_attend(PyObject* arguments);
PyObject* cache_fork(PyObject* arguments);
PyObject* cache_truncate(PyObject* arguments);
PyObject* cache_drop_before(PyObject* arguments);
PyObject* cache_release(PyObject* arguments);
PyObject* cache_length(PyObject* arguments);
PyObject* cache_reserve(PyObject* arguments);
PyObject* cache_usage(PyObject* arguments);

}  // namespace attn::python
