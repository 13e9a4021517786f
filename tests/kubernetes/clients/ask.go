// An application that nobody changed, with Go's own client: ask URL TIMES
package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
)

func main() {
	times, _ := strconv.Atoi(os.Args[2])
	for n := 0; n < times; n++ {
		answer, err := http.Get(os.Args[1])
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		io.Copy(io.Discard, answer.Body)
		answer.Body.Close()
		fmt.Println(answer.StatusCode, answer.Header.Get("Via"))
	}
}
