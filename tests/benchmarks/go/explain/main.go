// Answers with kubectl's explain: the first line of standard input is {"documents": {key: file}}, each other
// {"document": key, "group", "version", "resource", "path": [...], "recursive": false, "maxDepth": 0}; one
// answer on each line of standard output, {"text"} or {"error"}.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/runtime/schema"
	explain "k8s.io/kubectl/pkg/explain/v2"
)

type question struct {
	Document  string   `json:"document"`
	Group     string   `json:"group"`
	Version   string   `json:"version"`
	Resource  string   `json:"resource"`
	Path      []string `json:"path"`
	Recursive bool     `json:"recursive"`
	MaxDepth  int      `json:"maxDepth"`
}

type answer struct {
	Text  string `json:"text,omitempty"`
	Error string `json:"error,omitempty"`
}

func must[T any](value T, err error) T {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return value
}

func main() {
	generator := explain.NewGenerator()
	template := must(os.ReadFile(filepath.Clean(os.Args[1])))
	must(0, generator.AddTemplate("plaintext", string(template)))
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(make([]byte, 1<<20), 1<<28)
	in.Scan()
	var head struct {
		Documents map[string]string `json:"documents"`
	}
	must(0, json.Unmarshal(in.Bytes(), &head))
	documents := map[string]map[string]any{}
	for key, path := range head.Documents {
		var document map[string]any
		must(0, json.Unmarshal(must(os.ReadFile(filepath.Clean(path))), &document))
		documents[key] = document
	}
	out := json.NewEncoder(os.Stdout)
	for in.Scan() {
		var q question
		must(0, json.Unmarshal(in.Bytes(), &q))
		var text bytes.Buffer
		gvr := schema.GroupVersionResource{Group: q.Group, Version: q.Version, Resource: q.Resource}
		err := generator.Render("plaintext", documents[q.Document], gvr, q.Path, q.Recursive, q.MaxDepth, &text)
		if err != nil {
			must(0, out.Encode(answer{Error: err.Error()}))
			continue
		}
		must(0, out.Encode(answer{Text: text.String()}))
	}
}
