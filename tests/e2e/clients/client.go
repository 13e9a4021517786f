// Go's net/http through HTTP_PROXY, and with an absolute-form https target: client BASE TLSBASE PROXY
package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"sync"
)

func must(err error) {
	if err != nil {
		fmt.Println("failed:", err)
		os.Exit(1)
	}
}

func read(answer *http.Response, err error) string {
	must(err)
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	must(err)
	if answer.StatusCode != 200 {
		must(fmt.Errorf("%s %s", answer.Status, body))
	}
	return string(body)
}

func main() {
	base, tlsBase, proxy := os.Args[1], os.Args[2], os.Args[3]
	for i := 0; i < 20; i++ {
		read(http.Get(base + "/hello"))
	}
	var all sync.WaitGroup
	for i := 0; i < 8; i++ {
		all.Add(1)
		go func() {
			defer all.Done()
			for i := 0; i < 20; i++ {
				read(http.Get(base + "/hello"))
			}
		}()
	}
	all.Wait()
	fmt.Println("big", len(read(http.Get(base+"/big"))))
	fmt.Print(read(http.Post(base+"/sink", "application/octet-stream", bytes.NewReader(make([]byte, 1<<20)))))
	through, err := url.Parse(proxy)
	must(err)
	request := &http.Request{Method: "GET", URL: &url.URL{Scheme: "http", Host: through.Host, Opaque: tlsBase + "/hello"}}
	direct := &http.Client{Transport: &http.Transport{}}
	fmt.Print(read(direct.Do(request)))
}
