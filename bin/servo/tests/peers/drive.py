"""Drives a server through boto3 alone: `drive.py SCENARIO FOLDER`. An assertion that fails ends it with its traceback.

Where the server is, and with which keys, comes from the variables that boto3 itself reads.
"""

import datetime
import json
import sys
import time
import uuid
from pathlib import Path

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

PATIENCE = 60
FOLDER = Path(sys.argv[2])
# Without retries a refusal that should not be one shows at once.
client = boto3.client("lambda", config=Config(retries={"total_max_attempts": 1}, read_timeout=PATIENCE))


def marks() -> str:
    return str(FOLDER / f"marks-{uuid.uuid4()}")


def lines(path: str) -> list[str]:
    return Path(path).read_text().split("\n")[:-1]


def invoke(function: str, event: dict, **more: object) -> dict:
    return client.invoke(FunctionName=function, Qualifier="$LATEST", Payload=json.dumps(event), **more)


def result(function: str, event: dict, **more: object) -> object:
    answer = invoke(function, event, **more)
    document = json.loads(answer["Payload"].read())
    assert answer["StatusCode"] == 200 and "FunctionError" not in answer, (answer, document)
    return document


def until(what: str, look):
    for _ in range(PATIENCE * 50):
        if found := look():
            return found
        time.sleep(0.02)
    raise AssertionError(f"not in time: {what}")


def ended(arn: str) -> dict:
    def look():
        execution = client.get_durable_execution(DurableExecutionArn=arn)
        return execution if execution["Status"] != "RUNNING" else None

    return until(f"the end of {arn}", look)


def callback_id(tell: Path) -> str:
    return until("the callback's id", lambda: tell.exists() and tell.read_text())


def refused(error: type[ClientError], call, **parameters: object) -> str:
    try:
        call(**parameters)
    except error as exception:
        return exception.response["Error"]["Message"]
    raise AssertionError(f"{error} expected")


def history(arn: str, **more: object) -> list[dict]:
    pages = client.get_paginator("get_durable_execution_history").paginate(DurableExecutionArn=arn, **more)
    return [event for page in pages for event in page["Events"]]


def workflows() -> None:
    """Every kind of operation, each to its result, and each recorded step run once."""
    path = marks()
    assert result("order", {"marks": path, "order": 7}) == {"steps": ["reserve", "charge"], "order": 7}
    assert lines(path) == ["reserve", "charge"]

    path = marks()
    done = result("fan", {"marks": path, "items": [1, 2, 3, 4]})
    assert done == {"branches": ["left", "right", "late"], "squares": [1, 4, 9, 16]}, done
    assert sorted(lines(path)) == ["late", "left", "right"]

    path = marks()
    assert result("parent", {"marks": path, "order": 8})["child"]["order"] == 8
    assert lines(path) == ["reserve", "charge"]

    path = marks()
    assert result("flaky", {"marks": path}) == "second time lucky"
    assert lines(path) == ["attempt", "attempt"]

    answer = invoke("broken", {"marks": path})
    document = json.loads(answer["Payload"].read())
    assert answer["FunctionError"] == "Unhandled" and document["errorMessage"] == "nothing can be done", document


def sizes() -> None:
    """What does not fit into one page, one record or one answer, up to the limits that AWS publishes."""
    path = marks()
    most = 6 * 1024 * 1024
    event = {"marks": path, "items": 150, "result": most - 2, "padding": []}
    # Full of quotes, which take two bytes wherever the event is kept inside a document.
    event["padding"] = ["a"] * ((most - len(json.dumps(event))) // len('"a", '))
    assert len(result("large", event)) == most - 2
    assert lines(path) == ["part", "part", "400000 11325"], lines(path)

    answer = invoke("large", {"marks": marks(), "items": 1, "result": most - 1})
    document = json.loads(answer["Payload"].read())
    assert answer.get("FunctionError") == "Unhandled", str(document)[:200]
    too_large = {"marks": path, "padding": "a" * most}
    refused(client.exceptions.RequestTooLargeException, invoke, function="large", event=too_large)


def callbacks() -> None:
    """A callback is answered with success, failure and too late."""
    for send, parameters, status in [
        (client.send_durable_execution_callback_success, {"Result": b'"yes"'}, "SUCCEEDED"),
        (client.send_durable_execution_callback_failure, {"Error": {"ErrorMessage": "no", "ErrorType": "Denied"}}, "FAILED"),
    ]:
        tell = FOLDER / f"tell-{uuid.uuid4()}"
        arn = invoke("approval", {"tell": str(tell)}, InvocationType="Event")["DurableExecutionArn"]
        id = callback_id(tell)
        client.send_durable_execution_callback_heartbeat(CallbackId=id)
        send(CallbackId=id, **parameters)
        execution = ended(arn)
        assert execution["Status"] == status, execution
        if status == "SUCCEEDED":
            # The SDK hands a callback's result to the handler as the text that was sent.
            assert json.loads(execution["Result"]) == {"answer": '"yes"'}, execution
        else:
            assert execution["Error"]["ErrorMessage"] == "no", execution
        refused(client.exceptions.CallbackTimeoutException, send, CallbackId=id, **parameters)

    tell = FOLDER / f"tell-{uuid.uuid4()}"
    arn = invoke("approval", {"tell": str(tell), "timeout": 1}, InvocationType="Event")["DurableExecutionArn"]
    assert ended(arn)["Status"] == "FAILED"
    late = client.send_durable_execution_callback_success
    refused(client.exceptions.CallbackTimeoutException, late, CallbackId=callback_id(tell), Result=b"1")
    unknown = client.exceptions.ResourceNotFoundException
    refused(unknown, client.send_durable_execution_callback_heartbeat, CallbackId="bm8gc3VjaCBjYWxsYmFjaw==")


def executions() -> None:
    """Starting, looking, listing and stopping, and what is refused how."""
    path, began = marks(), datetime.datetime.now(datetime.timezone.utc)
    event = {"marks": path, "order": 1}
    name = f"order-{uuid.uuid4()}"

    dry = invoke("order", event, InvocationType="DryRun")
    assert dry["StatusCode"] == 204 and "DurableExecutionArn" not in dry, dry

    first = invoke("order", event, InvocationType="Event", DurableExecutionName=name)
    again = invoke("order", event, InvocationType="Event", DurableExecutionName=name)
    arn = first["DurableExecutionArn"]
    assert first["StatusCode"] == 202 and first["ExecutedVersion"] == "1", first
    assert again["DurableExecutionArn"] == arn, again
    refused(
        client.exceptions.DurableExecutionAlreadyStartedException,
        invoke, function="order", event={"marks": path, "order": 2}, DurableExecutionName=name,
    )  # fmt: skip

    execution = ended(arn)
    assert execution["Status"] == "SUCCEEDED" and execution["DurableExecutionName"] == name, execution
    assert json.loads(execution["InputPayload"]) == event and json.loads(execution["Result"])["order"] == 1, execution
    assert began <= execution["StartTimestamp"] + datetime.timedelta(seconds=1), (began, execution)
    assert execution["StartTimestamp"] + datetime.timedelta(seconds=1) <= execution["EndTimestamp"], execution
    assert lines(path) == ["reserve", "charge"]

    events = history(arn, PaginationConfig={"PageSize": 2})
    assert [event["EventId"] for event in events] == list(range(1, len(events) + 1)), events
    assert [event["EventType"] for event in events] == [
        "ExecutionStarted",
        "StepStarted", "StepSucceeded",
        "WaitStarted", "InvocationCompleted", "WaitSucceeded",
        "StepStarted", "StepSucceeded",
        "InvocationCompleted", "ExecutionSucceeded",
    ], [event["EventType"] for event in events]  # fmt: skip
    assert events == history(arn) and events == history(arn, ReverseOrder=True)[::-1]
    assert events[2]["StepSucceededDetails"]["Result"]["Payload"] == '"reserve"', events[2]
    assert events[3]["WaitStartedDetails"]["Duration"] == 1, events[3]

    others = {invoke("order", event, InvocationType="Event")["DurableExecutionArn"] for _ in range(4)}
    listing = client.get_paginator("list_durable_executions_by_function")

    def listed(**filters: object) -> list[str]:
        pages = listing.paginate(FunctionName="order", PaginationConfig={"PageSize": 2}, **filters)
        return [item["DurableExecutionArn"] for page in pages for item in page["DurableExecutions"]]

    found = listed(StartedAfter=began - datetime.timedelta(seconds=1))
    assert len(found) == len(set(found)) and {arn, *others} <= set(found), (found, others)
    assert listed(DurableExecutionName=name) == [arn]
    assert listed(ReverseOrder=True) == listed()[::-1]
    for other in others:
        ended(other)
    assert set(others) <= set(listed(Statuses=["SUCCEEDED"])) and listed(Statuses=["TIMED_OUT"]) == []

    long = invoke("order", {**event, "seconds": 3600}, InvocationType="Event")["DurableExecutionArn"]
    until("the wait", lambda: [event for event in history(long) if event["EventType"] == "WaitStarted"])
    assert long in listed(Statuses=["RUNNING"])
    stopped = client.stop_durable_execution(DurableExecutionArn=long, Error={"ErrorType": "Changed", "ErrorMessage": "mind"})
    execution = ended(long)
    assert execution["Status"] == "STOPPED" and execution["Error"]["ErrorType"] == "Changed", execution
    assert execution["EndTimestamp"] == stopped["StopTimestamp"], (execution, stopped)
    client.stop_durable_execution(DurableExecutionArn=long)

    missing = arn.rsplit("/", 1)[0] + "/inv_missing"
    not_found = client.exceptions.ResourceNotFoundException
    refused(not_found, invoke, function="nobody", event={})
    refused(not_found, client.get_durable_execution, DurableExecutionArn=missing)
    refused(not_found, client.get_durable_execution_history, DurableExecutionArn=missing)
    refused(not_found, client.stop_durable_execution, DurableExecutionArn=missing)
    refused(not_found, client.list_durable_executions_by_function, FunctionName="nobody")
    invalid = client.exceptions.InvalidParameterValueException
    refused(invalid, client.get_durable_execution_history, DurableExecutionArn=arn, Marker="bm8=")
    refused(invalid, client.list_durable_executions_by_function, FunctionName="order", Marker="bm8=")
    stale = refused(invalid, client.checkpoint_durable_execution, DurableExecutionArn=arn, CheckpointToken="bm8=", Updates=[])
    assert stale.startswith("Invalid checkpoint token"), stale
    refused(
        client.exceptions.InvalidRequestContentException,
        client.invoke, FunctionName="order", Qualifier="$LATEST", Payload=b"{not json",
    )  # fmt: skip


def signed() -> None:
    """The keys in the environment are known to the server."""
    path = marks()
    assert result("order", {"marks": path, "order": "ünïcode / + = ?"}, DurableExecutionName="a_b-c")["order"] == "ünïcode / + = ?"
    pages = client.get_paginator("list_durable_executions_by_function").paginate(
        FunctionName="order", Qualifier="$LATEST", Statuses=["SUCCEEDED", "FAILED"],
        StartedAfter=datetime.datetime(2026, 1, 31, 12, tzinfo=datetime.timezone.utc),
    )  # fmt: skip
    found = [item for page in pages for item in page["DurableExecutions"]]
    assert [item["DurableExecutionName"] for item in found] == ["a_b-c"], found
    assert len(history(found[0]["DurableExecutionArn"])) == 10


def refused_keys() -> None:
    """The keys in the environment are not known to the server, or their secret is another."""
    try:
        invoke("order", {})
    except ClientError as error:
        assert error.response["ResponseMetadata"]["HTTPStatusCode"] in (401, 403), error.response
        known = {"UnrecognizedClientException": "security token", "InvalidSignatureException": "does not match"}
        told = error.response["Error"]
        assert known[told["Code"]] in told["Message"], error.response
        return
    raise AssertionError("accepted")


globals()[sys.argv[1]]()
