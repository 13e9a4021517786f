// Node's https and http2 through CONNECT, as its proxy agents do, and fetch where undici is installed: intercepted URL h1|h2|fetch
const http = require("http");
const http2 = require("http2");
const https = require("https");
const tls = require("tls");
const [url, how] = process.argv.slice(2);
const { hostname, port } = new URL(process.env.HTTPS_PROXY);
const origin = new URL(url);

function connect(protocol) {
  return new Promise((resolve, reject) => {
    const request = http.request({ hostname, port, method: "CONNECT", path: origin.host, headers: { Host: origin.host } });
    request.on("connect", (answer, socket) => {
      if (answer.statusCode !== 200) return reject(new Error("CONNECT: " + answer.statusCode));
      const secure = tls.connect({ socket, servername: origin.hostname, ALPNProtocols: [protocol] }, () => resolve(secure));
      secure.on("error", reject);
    });
    request.on("error", reject).end();
  });
}

function collect(stream, done) {
  const parts = [];
  stream.on("data", (part) => parts.push(part)).on("end", () => done(Buffer.concat(parts).toString()));
}

async function h1(method, path, body) {
  const socket = await connect("http/1.1");
  return new Promise((resolve, reject) => {
    const request = https.request(url + path, { method, createConnection: () => socket }, (answer) => {
      collect(answer, (text) => resolve(answer.statusCode + " HTTP/1 " + text));
    });
    request.on("error", reject).end(body);
  });
}

async function h2(method, path, body) {
  const socket = await connect("h2");
  const session = http2.connect(url, { createConnection: () => socket });
  return new Promise((resolve, reject) => {
    const stream = session.request({ ":method": method, ":path": path }).on("error", reject);
    stream.on("response", (head) => collect(stream, (text) => resolve(head[":status"] + " HTTP/2 " + text)));
    stream.end(body);
  }).finally(() => session.close());
}

async function fetched(method, path, body) {
  const { ProxyAgent, fetch } = require("undici");
  const dispatcher = new ProxyAgent(process.env.HTTPS_PROXY);
  const answer = await fetch(url + path, { method, body, dispatcher });
  const said = answer.status + " HTTP/1 " + (await answer.text());
  await dispatcher.close();
  return said;
}

(async () => {
  const ask = { h1, h2, fetch: fetched }[how];
  for (let i = 0; i < 5; i++) console.log(await ask("GET", "/hello"));
  console.log(await ask("POST", "/sink", Buffer.alloc(100000)));
})().catch((error) => {
  console.log("failed:", error.message, error.cause || "");
  process.exit(1);
});
