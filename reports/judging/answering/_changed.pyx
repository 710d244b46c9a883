"""Which entries of dicts are no longer what they were, without a reference to what stayed.

A reference is counted in the object: a forked process that takes one to each of ten thousand functions
copies the pages of all of them. So these loops hold borrowed pointers, and nothing here runs Python between
two of them but the comparison of keys that differ.
"""

from cpython.ref cimport PyObject

cdef extern from "Python.h":
    bint PyDict_Next(PyObject* where, Py_ssize_t* place, PyObject** key, PyObject** value) noexcept
    Py_ssize_t PyDict_Size(PyObject* where) except -1
    PyObject* PyDict_GetItemWithError(PyObject* where, PyObject* key) except? NULL
    PyObject* PyTuple_GetItem(PyObject* where, Py_ssize_t place) except NULL


cdef bint _next_changed(
    PyObject* was, Py_ssize_t* here, PyObject* now, Py_ssize_t* there, bint* in_step, PyObject** key
) except -1:
    """Go on to the next entry of `was` that `now` has another object for; False at the end.

    Both are walked in step as long as their keys are the same ones; beyond that a key is looked up.
    """
    cdef PyObject* value = NULL
    cdef PyObject* other_key = NULL
    cdef PyObject* other = NULL
    while PyDict_Next(was, here, key, &value):
        if in_step[0]:
            in_step[0] = PyDict_Next(now, there, &other_key, &other) and other_key == key[0]
        if not in_step[0]:
            other = PyDict_GetItemWithError(now, key[0])
        if other != value:
            return True
    return False


def changed(dict was, dict now) -> list[object]:
    """Keys of `was` that have another object in `now`, or none."""
    cdef Py_ssize_t here = 0, there = 0
    cdef bint in_step = True
    cdef PyObject* key = NULL
    cdef list found = []
    while _next_changed(<PyObject*>was, &here, <PyObject*>now, &there, &in_step, &key):
        found.append(<object>key)
    return found


def changed_owners(dict snapshot) -> list[object]:
    """Keys of a dict of pairs (what a dict is now, what it was) that differ, also by what was added."""
    cdef Py_ssize_t place = 0, here, there
    cdef bint in_step, differs
    cdef PyObject* name = NULL
    cdef PyObject* pair = NULL
    cdef PyObject* key = NULL
    cdef PyObject* now
    cdef PyObject* was
    cdef list found = []
    while PyDict_Next(<PyObject*>snapshot, &place, &name, &pair):
        now, was = PyTuple_GetItem(pair, 0), PyTuple_GetItem(pair, 1)
        here, there, in_step = 0, 0, True
        differs = PyDict_Size(now) != PyDict_Size(was)
        if differs or _next_changed(was, &here, now, &there, &in_step, &key):
            found.append(<object>name)
    return found
