// Decodes objects as an apiserver does with fieldValidation=Strict: each line of standard input is a JSON string
// of YAML, each line of standard output {"accept": true} or {"accept": false, "error"}.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/runtime"
	serializer "k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/client-go/kubernetes/scheme"
)

type answer struct {
	Accept bool   `json:"accept"`
	Error  string `json:"error,omitempty"`
}

func main() {
	decoder := runtime.Decoder(serializer.NewSerializerWithOptions(
		serializer.DefaultMetaFactory, scheme.Scheme, scheme.Scheme, serializer.SerializerOptions{Yaml: true, Strict: true}))
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(make([]byte, 1<<20), 1<<26)
	out := json.NewEncoder(os.Stdout)
	for in.Scan() {
		var text string
		err := json.Unmarshal(in.Bytes(), &text)
		if err == nil {
			_, _, err = decoder.Decode([]byte(text), nil, nil)
		}
		a := answer{Accept: err == nil}
		if err != nil {
			a.Error = err.Error()
		}
		if err := out.Encode(a); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}
