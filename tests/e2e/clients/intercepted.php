<?php
// PHP's https stream with SSL_CERT_FILE of the environment, and the proxy in its context: intercepted URL
$url = $argv[1];
$proxy = str_replace("http://", "tcp://", getenv("HTTPS_PROXY"));

function ask($url, $proxy, $more = []) {
    $context = stream_context_create(["http" => ["proxy" => $proxy, "protocol_version" => 1.1, "header" => "Connection: close\r\nContent-Type: text/plain"] + $more]);
    $body = file_get_contents($url, false, $context);
    $words = explode(" ", $http_response_header[0]);
    echo "$words[1] HTTP/1 $body\n";
}

for ($i = 0; $i < 5; $i++) ask("$url/hello", $proxy);
ask("$url/sink", $proxy, ["method" => "POST", "content" => str_repeat("x", 100000)]);
