// Command proxy is the peer of the first-fetch benchmark: the standard library's reverse proxy, nothing around it.
// It prints the port it listens on, and serves until it is killed.
package main

import (
	"fmt"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
)

func main() {
	target, err := url.Parse(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	log.Fatal(http.Serve(listener, httputil.NewSingleHostReverseProxy(target)))
}
