"""Fork and exit: the core's locks and threads at the two moments that threads do not survive.

Imported wherever the native module is first used; importing it twice does nothing.
"""

from __future__ import annotations

import atexit
import os

from . import _native

#: How long exit waits for commands to end, in seconds. They are told at once and need a few milliseconds.
_PATIENCE = 2.0

os.register_at_fork(
    before=_native._before_fork,
    after_in_parent=_native._after_fork_in_parent,
    after_in_child=_native._after_fork_in_child,
)
atexit.register(_native._shut_down, _PATIENCE)
