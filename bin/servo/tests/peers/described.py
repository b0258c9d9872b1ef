"""Hooks of schemathesis: the requests of its first phase are sent as they are written in the examples.

Without them it puts values of its own into members that an example leaves out, also into those that must fit to others."""

import json
import os

import schemathesis

with open(os.environ["SERVO_TEST_BODIES"], encoding="utf-8") as file:
    # The text of a body by the id of its operation.
    BODIES = json.load(file)


@schemathesis.hook
def before_call(context, case, kwargs):
    if case.meta is not None and case.meta.phase.name.value == "examples":
        body = BODIES.get(case.operation.definition.raw.get("operationId"))
        if body is not None:
            case.body = body.encode()
