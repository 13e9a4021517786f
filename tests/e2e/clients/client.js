// Node's http through a proxy, plain and absolute-form https: client BASE TLSBASE PROXY
const http = require("http");
const [base, tlsBase, proxy] = process.argv.slice(2);
const { hostname, port } = new URL(proxy);
const agent = new http.Agent({ keepAlive: true, maxSockets: 8 });

function ask(target, method = "GET", body) {
  return new Promise((resolve, reject) => {
    const headers = { Host: new URL(target).host };
    if (body) headers["Content-Length"] = body.length;
    const request = http.request({ hostname, port, path: target, method, headers, agent }, (answer) => {
      const parts = [];
      answer.on("data", (part) => parts.push(part));
      answer.on("aborted", () => reject(new Error("aborted")));
      answer.on("end", () => {
        const text = Buffer.concat(parts).toString("latin1");
        if (answer.statusCode === 200) resolve(text);
        else reject(new Error(answer.statusCode + " " + text));
      });
    });
    request.on("error", reject);
    request.end(body);
  });
}

(async () => {
  for (let i = 0; i < 20; i++) await ask(base + "/hello");
  await Promise.all(Array.from({ length: 160 }, () => ask(base + "/hello")));
  console.log("big", (await ask(base + "/big")).length);
  process.stdout.write(await ask(base + "/sink", "POST", Buffer.alloc(1 << 20)));
  process.stdout.write(await ask(tlsBase + "/hello"));
  agent.destroy();
})().catch((error) => {
  console.log("failed:", error.message);
  process.exit(1);
});
