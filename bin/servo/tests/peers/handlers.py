"""Handlers on AWS's own SDK for Python, as their authors would write them: nothing here knows what runs them."""

import os
import time
from pathlib import Path

from aws_durable_execution_sdk_python import DurableContext, durable_execution
from aws_durable_execution_sdk_python.config import CallbackConfig, Duration, StepConfig
from aws_durable_execution_sdk_python.retries import RetryDecision

# Steps that wait for a file look again after so many seconds, and give up after so many looks.
LOOK_AGAIN = 0.02
LOOKS_MAX = 3000


def mark(event: dict, word: str) -> str:
    """Leaves a line for the test to count; a step whose result is recorded must not come here again."""
    with Path(event["marks"]).open("a") as marks:
        marks.write(f"{word}\n")
    return word


@durable_execution
def order(event: dict, context: DurableContext) -> dict:
    reserved = context.step(lambda _: mark(event, "reserve"), name="reserve")
    context.wait(Duration.from_seconds(event.get("seconds", 1)), name="settle")
    charged = context.step(lambda _: mark(event, "charge"), name="charge")
    return {"steps": [reserved, charged], "order": event.get("order")}


@durable_execution
def fan(event: dict, context: DurableContext) -> dict:
    def branch(word: str):
        return lambda child: child.step(lambda _: mark(event, word), name=word)

    def waits(child: DurableContext) -> str:
        child.wait(Duration.from_seconds(1))
        return child.step(lambda _: mark(event, "late"), name="late")

    def square(child: DurableContext, item: int, index: int, items: list) -> int:
        return child.step(lambda _: item * item, name=f"square-{index}")

    branches = context.parallel([branch("left"), branch("right"), waits], name="branches")
    squares = context.map(event["items"], square, name="squares")
    return {"branches": branches.get_results(), "squares": squares.get_results()}


@durable_execution
def approval(event: dict, context: DurableContext) -> dict:
    timeout = Duration.from_seconds(event.get("timeout", 60))
    callback = context.create_callback(name="approval", config=CallbackConfig(timeout=timeout))
    context.step(lambda _: Path(event["tell"]).write_text(callback.callback_id), name="tell")
    return {"answer": callback.result()}


@durable_execution
def parent(event: dict, context: DurableContext) -> dict:
    return {"child": context.invoke("order", event, name="child")}


@durable_execution
def flaky(event: dict, context: DurableContext) -> str:
    def once_more(error: Exception, attempt: int) -> RetryDecision:
        return RetryDecision.retry(Duration.from_seconds(1)) if attempt < 3 else RetryDecision.no_retry()

    def body(_) -> str:
        mark(event, "attempt")
        if Path(event["marks"]).read_text().count("attempt") < 2:
            raise RuntimeError("the first attempt fails")
        return "second time lucky"

    return context.step(body, name="flaky", config=StepConfig(retry_strategy=once_more))


@durable_execution
def broken(event: dict, context: DurableContext) -> str:
    raise ValueError("nothing can be done")


@durable_execution
def gated(event: dict, context: DurableContext) -> list:
    """A step is recorded, then one hangs until the test opens the gate."""

    def hang(_) -> int:
        mark(event, f"hang {os.getpid()}")
        for _ in range(LOOKS_MAX):
            if Path(event["gate"]).exists():
                return os.getpid()
            time.sleep(LOOK_AGAIN)
        raise TimeoutError("the gate stayed shut")

    first = context.step(lambda _: mark(event, "first"), name="first")
    pid = context.step(hang, name="hang")
    last = context.step(lambda _: mark(event, "last"), name="last")
    return [first, pid, last]


@durable_execution
def large(event: dict, context: DurableContext) -> str:
    """More operations than a page of the state holds, a context too large to be recorded, and a result near the limit."""

    def big(child: DurableContext) -> str:
        parts = [child.step(lambda _: mark(event, "part") * 50_000, name=f"part-{number}") for number in range(2)]
        return "".join(parts)

    def item(child: DurableContext, number: int, index: int, items: list) -> int:
        return child.step(lambda _: number + 1, name="add")

    text = context.run_in_child_context(big, name="big")
    numbers = context.map(range(event["items"]), item, name="numbers").get_results()
    context.wait(Duration.from_seconds(1))
    context.step(lambda _: mark(event, f"{len(text)} {sum(numbers)}"), name="sum")
    return "r" * event["result"]
