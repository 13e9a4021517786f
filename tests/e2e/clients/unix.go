// Go's net/http through carpool's Unix socket: unix SOCKET URL
package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
)

func main() {
	socket, base := os.Args[1], os.Args[2]
	client := &http.Client{Transport: &http.Transport{
		Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: "carpool"}), // any name: the dialer decides
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		},
	}}
	for i := 0; i < 3; i++ {
		answer, err := client.Get(base + "/go")
		if err != nil {
			panic(err)
		}
		body, _ := io.ReadAll(answer.Body)
		answer.Body.Close()
		fmt.Println(answer.StatusCode, string(body))
	}
}
