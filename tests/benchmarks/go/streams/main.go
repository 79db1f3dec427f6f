// Answers with what kubectl reads of a stream: one JSON string on each line of standard input; on each line of
// output the objects, and the error behind them.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
)

type answer struct {
	Objects []json.RawMessage `json:"objects"`
	Error   string            `json:"error,omitempty"`
}

// As cli-runtime's StreamVisitor reads a file.
func read(text string) answer {
	found := answer{Objects: []json.RawMessage{}}
	decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096)
	for {
		next := runtime.RawExtension{}
		if err := decoder.Decode(&next); err == io.EOF {
			return found
		} else if err != nil {
			found.Error = err.Error()
			return found
		}
		raw := bytes.TrimSpace(next.Raw)
		if len(raw) > 0 && !bytes.Equal(raw, []byte("null")) {
			found.Objects = append(found.Objects, raw)
		}
	}
}

func main() {
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(make([]byte, 1<<20), 1<<28)
	out := json.NewEncoder(os.Stdout)
	out.SetEscapeHTML(false)
	for in.Scan() {
		var text string
		err := json.Unmarshal(in.Bytes(), &text)
		if err == nil {
			err = out.Encode(read(text))
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}
