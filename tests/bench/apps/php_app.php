<?php
// As gunicorn_app.py: one https call by curl, on a connection of its own.
$curl = curl_init(getenv("TARGET"));
curl_setopt_array($curl, [CURLOPT_RETURNTRANSFER => true, CURLOPT_TIMEOUT => 30]);
$began = hrtime(true);
$body = curl_exec($curl);
$took = (hrtime(true) - $began) / 1e6;
$said = $body === "hello\n" ? "ok" : ($body === false ? "error-" . curl_errno($curl) : "status-" . curl_getinfo($curl, CURLINFO_RESPONSE_CODE));
header("Content-Type: text/plain");
printf("%s %.3f", $said, $took);
