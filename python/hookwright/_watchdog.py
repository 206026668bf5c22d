"""The parts of the watchdog that have to be Python: the exception class and the C function that raises it.

``PyThreadState_SetAsyncExc`` is not in the limited API's safe surface, so it is reached through ctypes.
"""

from __future__ import annotations

import ctypes
from typing import Any


class Deadline(BaseException):
    """Raised inside a hook whose time is up. Private: what a caller sees is a run with status ``timeout``."""


set_async_exception: Any = ctypes.pythonapi.PyThreadState_SetAsyncExc
set_async_exception.argtypes = [ctypes.c_ulong, ctypes.py_object]
set_async_exception.restype = ctypes.c_int

#: A null pointer: takes a pending exception back.
NOTHING = ctypes.py_object()
