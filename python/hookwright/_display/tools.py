"""A tool as the model sees it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ._page import escape, page, table


def tool_html(tool: Mapping[str, Any]) -> str:
    """Name, description and parameters of a tool.

    Args:
        tool: `name`, `description`, `flags` (text), and `parameters`: name to (type, "required" or default, text).
    """
    head = f"<div><b>{escape(tool.get('name'))}</b> <span class='quiet'>{escape(tool.get('flags'))}</span></div>"
    description = f"<div>{escape(tool['description'])}</div>" if tool.get("description") else ""
    rows = [
        (f"<code>{escape(name)}</code>", escape(kind), escape(default), escape(text))
        for name, (kind, default, text) in (tool.get("parameters") or {}).items()
    ]
    parameters = table(("parameter", "type", "default", ""), rows) if rows else '<div class="quiet">no parameters</div>'
    return page(head, description, parameters)
