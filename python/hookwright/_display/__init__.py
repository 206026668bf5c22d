"""HTML for notebooks: pure functions from plain dicts to strings.

Nothing here knows a class of the package, so the pages can be tested without the compiled module and rendered from a
record on disk. Everything that comes from outside is escaped; there are no scripts and nothing is loaded.
"""

from __future__ import annotations

from .chain import chain_html, explanation_html, filter_text, replay_html, stats_html
from .outcome import outcome_html
from .shell import analysis_html
from .timeline import timeline_html
from .tools import tool_html

__all__ = [
    "analysis_html",
    "chain_html",
    "explanation_html",
    "filter_text",
    "outcome_html",
    "replay_html",
    "stats_html",
    "timeline_html",
    "tool_html",
]
