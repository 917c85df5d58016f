// Collectors and shufflers on this machine, with real sockets.

import { createServer } from "node:http";

/** A collector that gives these answers in turn (the last one for ever), and what it was asked. */
export async function collector(...answers) {
  const asked = [];
  const server = createServer(async (request, response) => {
    const parts = [];
    for await (const part of request) parts.push(part);
    const body = Buffer.concat(parts);
    asked.push({ path: request.url, method: request.method, headers: request.headers, body });
    const answer = answers.length > 1 ? answers.shift() : answers[0];
    if (answer === "cut") return request.socket.destroy();
    if (answer === "silence") return undefined;
    response.writeHead(answer[0], { "Content-Type": "application/json" });
    return response.end(typeof answer[1] === "string" ? answer[1] : JSON.stringify(answer[1]));
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const close = () => (server.closeAllConnections(), new Promise((resolve) => server.close(resolve)));
  return { url: `http://127.0.0.1:${server.address().port}`, asked, close };
}

/** Do something with a collector that is there for so long. */
export async function at(answers, work) {
  const server = await collector(...answers);
  try {
    return await work(server);
  } finally {
    await server.close();
  }
}
