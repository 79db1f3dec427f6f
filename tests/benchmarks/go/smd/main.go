// Answers with kube-openapi's schema of structured-merge-diff: one JSON object on each line of standard input,
// {"schemas": components.schemas, "preserveUnknownFields": false}, one answer on each line of standard output,
// {"types": [...]} with types and fields by name, or {"errors": [...]}.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"sort"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/kube-openapi/pkg/schemaconv"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/structured-merge-diff/v6/schema"
)

type question struct {
	Schemas               map[string]*spec.Schema `json:"schemas"`
	PreserveUnknownFields bool                    `json:"preserveUnknownFields"`
}

func sorted(atom *schema.Atom) {
	if atom.Map == nil {
		if atom.List != nil {
			sorted(&atom.List.ElementType.Inlined)
		}
		return
	}
	fields := atom.Map.Fields
	sort.Slice(fields, func(i, j int) bool { return fields[i].Name < fields[j].Name })
	for i := range fields {
		sorted(&fields[i].Type.Inlined)
	}
	sorted(&atom.Map.ElementType.Inlined)
	if atom.List != nil {
		sorted(&atom.List.ElementType.Inlined)
	}
}

func ask(line []byte) (any, error) {
	var q question
	if err := json.Unmarshal(line, &q); err != nil {
		return nil, err
	}
	made, err := schemaconv.ToSchemaFromOpenAPI(q.Schemas, q.PreserveUnknownFields)
	if err != nil {
		return map[string]any{"errors": strings.Split(err.Error(), "\n")}, nil
	}
	sort.Slice(made.Types, func(i, j int) bool { return made.Types[i].Name < made.Types[j].Name })
	for i := range made.Types {
		sorted(&made.Types[i].Atom)
	}
	text, err := yaml.Marshal(made)
	if err != nil {
		return nil, err
	}
	var answer any
	err = yaml.Unmarshal(text, &answer)
	return answer, err
}

func main() {
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(make([]byte, 1<<20), 1<<28)
	out := json.NewEncoder(os.Stdout)
	for in.Scan() {
		answer, err := ask(in.Bytes())
		if err == nil {
			err = out.Encode(answer)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}
