// Node's http through carpool's Unix socket: unix SOCKET URL
const http = require("http");
const [socketPath, url] = process.argv.slice(2);
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

(async () => {
  for (let i = 0; i < 3; i++) console.log(await ask());
  agent.destroy();
})();
