// Node's http, or undici, through carpool's Unix socket: unix SOCKET URL [undici]
const http = require("http");
const [socketPath, url, undici] = process.argv.slice(2);
const agent = new http.Agent({ keepAlive: true });

function ask() {
  return new Promise((resolve, reject) => {
    const request = http.request({ socketPath, path: url + "/node", headers: { Host: new URL(url).host }, agent }, (answer) => {
      answer.setEncoding("utf8");
      let text = "";
      answer.on("data", (part) => (text += part));
      answer.on("end", () => resolve(answer.statusCode + " " + text));
    });
    request.on("error", reject);
    request.end();
  });
}

// The undici that Node contains, whose Agent is that of the first fetch(): the package itself may be absent.
async function fetcher() {
  await fetch("data:,").then((first) => first.text());
  const Agent = globalThis[Symbol.for("undici.globalDispatcher.1")].constructor;
  const dispatcher = new Agent({ connect: { socketPath } });
  return async () => {
    const answer = await fetch(url + "/undici", { dispatcher });
    return answer.status + " " + (await answer.text());
  };
}

(async () => {
  const one = undici ? await fetcher() : ask;
  for (let i = 0; i < 3; i++) console.log(await one());
  agent.destroy();
})();
