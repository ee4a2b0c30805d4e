// An upstream as people write it with net/http: `go run go_upstream.go PORT`.
package main

import (
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"os"
	"strings"
)

func main() {
	mux := http.NewServeMux()
	mux.HandleFunc("/files/private/", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "PRIVATE-HANDLER %s\n", r.Method)
	})
	mux.HandleFunc("/files/", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "files") })
	mux.HandleFunc("/v1/chat/completions", func(w http.ResponseWriter, r *http.Request) {
		var body any
		if json.NewDecoder(r.Body).Decode(&body) == nil && strings.Contains(fmt.Sprint(body), "DROP TABLE") {
			fmt.Fprintln(w, "ATTACK-READ")
			return
		}
		fmt.Fprintln(w, "harmless")
	})
	log.Fatal(http.ListenAndServe("127.0.0.1:"+os.Args[1], mux))
}
