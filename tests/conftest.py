"""What every test runs under."""

import signal

# A shell starts its background jobs with interrupts ignored, and children inherit that: without this line the tests of
# Ctrl-C would wait for nothing under `make test &`.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
