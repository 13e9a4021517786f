// Go's net/http with HTTPS_PROXY and SSL_CERT_FILE of the environment: intercepted URL h1|h2
package main

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"os"
)

func read(answer *http.Response, err error) string {
	if err != nil {
		fmt.Println("failed:", err)
		os.Exit(1)
	}
	defer answer.Body.Close()
	body, _ := io.ReadAll(answer.Body)
	return fmt.Sprintf("%d HTTP/%d %s\n", answer.StatusCode, answer.ProtoMajor, body)
}

func main() {
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment}
	if os.Args[2] == "h1" {
		transport.TLSNextProto = map[string]func(string, *tls.Conn) http.RoundTripper{}
	}
	client := &http.Client{Transport: transport}
	for i := 0; i < 5; i++ {
		fmt.Print(read(client.Get(os.Args[1] + "/hello")))
		client.CloseIdleConnections()
	}
	fmt.Print(read(client.Post(os.Args[1]+"/sink", "text/plain", bytes.NewReader(make([]byte, 100000)))))
}
