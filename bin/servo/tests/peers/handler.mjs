// A handler on AWS's own SDK for JavaScript, behind the smallest server that speaks Lambda's Invoke. It listens on the
// socket that it finds as its standard input.

import { appendFileSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { randomUUID } from "node:crypto";

// The packages are in a folder of the build, not beside this file.
const require = createRequire(process.env.PACKAGES + "/");
const { withDurableExecution } = require("@aws/durable-execution-sdk-js");

const order = withDurableExecution(async (event, context) => {
  const mark = async (word) => {
    appendFileSync(event.marks, word + "\n");
    return word;
  };
  const reserved = await context.step("reserve", () => mark("reserve"));
  await context.wait("settle", { seconds: 1 });
  const squares = await context.map("squares", event.items, async (child, item, index) =>
    child.step(`square-${index}`, async () => item * item),
  );
  const charged = await context.step("charge", () => mark("charge"));
  return { steps: [reserved, charged], squares: squares.getResults() };
});

const answer = (response, headers, document) => {
  response.writeHead(200, { "Content-Type": "application/json", ...headers });
  response.end(JSON.stringify(document));
};

const server = createServer(async (request, response) => {
  const chunks = await request.toArray();
  const context = {
    awsRequestId: randomUUID(),
    functionName: "order",
    functionVersion: "1",
    invokedFunctionArn: "arn:aws:lambda:us-east-1:000000000000:function:order",
    getRemainingTimeInMillis: () => 60_000,
  };
  try {
    answer(response, {}, await order(JSON.parse(Buffer.concat(chunks)), context));
  } catch (error) {
    const document = { errorType: error.name, errorMessage: error.message };
    answer(response, { "X-Amz-Function-Error": "Unhandled" }, document);
  }
});
server.listen({ fd: 0 });
