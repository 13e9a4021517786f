// As gunicorn_app.py: one https call by fetch. undici keeps connections of its own, so only their handshakes can be saved here.
import { createServer } from "node:http";
import { EnvHttpProxyAgent, fetch, setGlobalDispatcher } from "undici";

setGlobalDispatcher(new EnvHttpProxyAgent());
createServer(async (request, response) => {
  const began = performance.now();
  let said = "ok";
  try {
    const answer = await fetch(process.env.TARGET, { signal: AbortSignal.timeout(30000) });
    if ((await answer.text()) !== "hello\n") said = `status-${answer.status}`;
  } catch (error) {
    said = (error.cause ?? error).code ?? error.name;
  }
  response.end(`${said} ${(performance.now() - began).toFixed(3)}`);
}).listen(Number(process.env.PORT), "127.0.0.1");
