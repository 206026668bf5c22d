"""A server for chat completions that many ask at once: ``python waiting.py hold N`` or ``python waiting.py delay SECONDS``.

It prints its port. With ``hold`` it answers when N requests are there, and not before: who sends them one after the other
never gets an answer. With ``delay`` it answers each after that time.
"""

from __future__ import annotations

import asyncio
import json
import resource
import sys

REPLY = json.dumps(
    {
        "id": "x",
        "object": "chat.completion",
        "model": "fake",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "done"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 1, "total_tokens": 11},
    }
).encode()
RESPONSE = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s" % (len(REPLY), REPLY)


def raise_file_limit() -> None:
    """Each connection is a file."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


async def serve(mode: str, number: float) -> None:
    arrived = 0
    everybody = asyncio.Event()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal arrived
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = next(
                    int(line.split(b":")[1]) for line in head.splitlines() if line.lower().startswith(b"content-length")
                )
                await reader.readexactly(length)
                arrived += 1
                if mode == "hold":
                    if arrived == number:
                        everybody.set()
                    await everybody.wait()
                else:
                    await asyncio.sleep(number)
                writer.write(RESPONSE)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0, backlog=2048)
    print(server.sockets[0].getsockname()[1], flush=True)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    raise_file_limit()
    asyncio.run(serve(sys.argv[1], float(sys.argv[2])))
