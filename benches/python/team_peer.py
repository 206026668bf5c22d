"""What autogen-core is measured with. Its handlers are found by their annotations, which are no strings here."""

import asyncio
from dataclasses import dataclass

from autogen_core import AgentId, MessageContext, RoutedAgent, SingleThreadedAgentRuntime, message_handler

COUNT = 4_000


@dataclass
class Letter:
    """A letter with nothing but a number."""

    number: int


class Bouncer(RoutedAgent):
    """Takes letters and counts them."""

    received = 0
    over: asyncio.Event

    def __init__(self) -> None:
        super().__init__("takes letters")

    @message_handler
    async def on_letter(self, message: Letter, ctx: MessageContext) -> None:
        """One more."""
        Bouncer.received += 1
        if Bouncer.received >= COUNT:
            Bouncer.over.set()


async def exchange() -> None:
    """Sends as many letters as there are to be, each when the one before was handled."""
    Bouncer.received, Bouncer.over = 0, asyncio.Event()
    runtime = SingleThreadedAgentRuntime()
    await Bouncer.register(runtime, "bob", Bouncer)
    runtime.start()
    for number in range(COUNT):
        await runtime.send_message(Letter(number), AgentId("bob", "default"))
    await Bouncer.over.wait()
    await runtime.stop()
