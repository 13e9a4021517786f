// An application that nobody changed, with Node's own fetch: node ask.mjs URL TIMES
for (let n = 0; n < Number(process.argv[3]); n++) {
  const answer = await fetch(process.argv[2]);
  await answer.text();
  console.log(answer.status, answer.headers.get("via"));
}
