"""Serves the handlers over HTTP as Lambda's Invoke does: the smallest server that a push function needs.

It listens on the socket that it finds as its standard input, so that a successor can take its place without a gap.
"""

import json
import os
import socket
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import handlers
from awslambdaric.lambda_context import LambdaContext


def context(function: str) -> LambdaContext:
    os.environ.setdefault("AWS_LAMBDA_FUNCTION_NAME", function)
    arn = f"arn:aws:lambda:us-east-1:000000000000:function:{function}"
    return LambdaContext(
        invoke_id=str(uuid.uuid4()),
        client_context=None,
        cognito_identity=None,
        epoch_deadline_time_in_ms=0,
        invoked_function_arn=arn,
    )


class Invoke(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        function = self.path.removeprefix("/2015-03-31/functions/").removesuffix("/invocations").split(":")[0]
        payload = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        handler = getattr(handlers, function, None)
        if handler is None:
            return self.answer(404, {"Message": f"no function {function}"})
        try:
            answer = handler(payload, context(function))
        except Exception as error:
            document = {"errorType": type(error).__name__, "errorMessage": str(error)}
            return self.answer(200, document, {"X-Amz-Function-Error": "Unhandled"})
        return self.answer(200, answer)

    def answer(self, status: int, document: object, headers: dict | None = None) -> None:
        body = json.dumps(document).encode()
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", "Content-Length": str(len(body)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """The test has no use for an access log."""


server = ThreadingHTTPServer(("127.0.0.1", 0), Invoke, bind_and_activate=False)
server.socket.close()
server.socket = socket.socket(fileno=0)
server.serve_forever()
