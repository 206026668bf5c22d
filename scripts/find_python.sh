#!/bin/sh
# Prints the interpreter to build `.venv` with: $PYTHON if set, else the first that runs, is new enough and can make
# a virtual environment. A candidate is run, not just looked up: version managers leave names on PATH that do not start.
minimum="3, 10"
check='
import sys
import ensurepip, venv
sys.exit(0 if sys.version_info >= ('"$minimum"') else 1)
'

if [ -n "$PYTHON" ]; then
    candidates=$PYTHON
else
    candidates="python3.11 python3 python3.12 python3.13 python3.14 python3.10 python"
fi

for candidate in $candidates; do
    if command -v "$candidate" >/dev/null 2>&1 && "$candidate" -c "$check" >/dev/null 2>&1; then
        command -v "$candidate"
        exit 0
    fi
done

{
    echo "error: no usable Python: 3.10 or newer with the modules venv and ensurepip is needed"
    echo "  tried: $candidates"
    echo "  hint: install Python 3.11 (on Debian and Ubuntu also the package python3-venv), or name one: make PYTHON=/path/to/python3"
} >&2
exit 1
