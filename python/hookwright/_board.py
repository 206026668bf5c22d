"""Who does what in a team, as a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ._display.team import board_html

#: How many teammates a board shows in text.
_SHOWN = 40


@dataclass(frozen=True)
class TeamBoard:
    """A team at one moment; what `Team.board` returns. `print` it, or let a notebook show it.

    Attributes:
        name: the team's name.
        teammates: one dict each: name, role, parent, status, outcome, reason, rounds, calls, usage, cost, mail,
            addressed, text, summary, asked, owes, tasks.
        tasks: the tasks that the team shares.
        totals: what all together used: rounds, calls, usage, cost.

    Example:
        >>> import hookwright as hw
        >>> with hw.Team(hw.Scripted([])) as team:
        ...     print(team.board())
        team 'team': 0 teammates, 0 rounds, 0 tokens
    """

    __module__ = "hookwright"

    name: str
    teammates: list[dict[str, Any]]
    tasks: list[dict[str, Any]]
    totals: dict[str, Any]

    @property
    def open_questions(self) -> list[tuple[str, str]]:
        """Who waits for whose answer."""
        return [(mate["name"], asked) for mate in self.teammates for asked in mate["asked"]]

    def _headline(self) -> str:
        used = self.totals["usage"]
        tokens = int(used.get("input_tokens", 0)) + int(used.get("output_tokens", 0))
        rounds, count = self.totals["rounds"], len(self.teammates)
        return (
            f"{self.name!r}: {count} teammate{'' if count == 1 else 's'}, "
            f"{rounds} round{'' if rounds == 1 else 's'}, {tokens} tokens"
        )

    def __str__(self) -> str:
        lines = [f"team {self._headline()}"]
        width = max((len(mate["name"]) for mate in self.teammates[:_SHOWN]), default=0)
        for mate in self.teammates[:_SHOWN]:
            ended = f" ({mate['outcome']})" if mate["outcome"] else ""
            mail = f", {mate['mail']} letters" if mate["mail"] else ""
            tasks = f", {', '.join(mate['tasks'])}" if mate["tasks"] else ""
            lines.append(
                f"  {mate['name']:<{width}}  {mate['status']['text']}{ended}, {mate['rounds']} rounds{mail}{tasks}"
            )
        if len(self.teammates) > _SHOWN:
            lines.append(f"  and {len(self.teammates) - _SHOWN} more")
        for task in self.tasks:
            owner = f" ({task['owner']})" if task["owner"] else ""
            lines.append(f"  {task['id']} [{task['state']}] {task['title']}{owner}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<TeamBoard {self._headline()}>"

    def _repr_html_(self) -> str:
        return board_html(self.name, self.teammates, self.tasks, self.totals)
