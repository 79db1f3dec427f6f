// Answers what apimachinery and structured-merge-diff make of patches: one JSON object on each line of standard input,
// one answer on each line of standard output. The arguments are OpenAPI v3 documents, whose schemas type what is applied.
//
//	{"patch": {...}, "old": {...}, "apiVersion": "apps/v1", "kind": "Deployment"}  a strategic merge patch
//	{"apply": {...}, "old": {...}}  what is applied, typed, and merged into the stored object where there is one
//	{"json": "[...]", "old": {...}}  a JSON patch
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/kube-openapi/pkg/validation/spec"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

type question struct {
	APIVersion string          `json:"apiVersion"`
	Kind       string          `json:"kind"`
	Old        json.RawMessage `json:"old"`
	Patch      json.RawMessage `json:"patch"`
	Apply      json.RawMessage `json:"apply"`
	JSON       *string         `json:"json"`
}

type answer struct {
	Result any    `json:"result,omitempty"`
	Error  string `json:"error,omitempty"`
}

func object(raw json.RawMessage) map[string]any {
	value := map[string]any{}
	if len(raw) > 0 {
		if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &value); err != nil {
			panic(err)
		}
	}
	return runtime.DeepCopyJSON(value) // lists without room to grow, as a converted object has them
}

func strategic(asked question) (any, error) {
	kind := schema.FromAPIVersionAndKind(asked.APIVersion, asked.Kind)
	typed, err := scheme.Scheme.New(kind)
	if err != nil {
		return nil, err
	}
	return strategicpatch.StrategicMergeMapPatch(object(asked.Old), object(asked.Patch), typed)
}

func applied(asked question, converter managedfields.TypeConverter) (any, error) {
	patch, err := converter.ObjectToTyped(&unstructured.Unstructured{Object: object(asked.Apply)})
	if err != nil {
		return nil, err
	}
	if len(asked.Old) > 0 {
		live, err := converter.ObjectToTyped(&unstructured.Unstructured{Object: object(asked.Old)}, typed.AllowDuplicates)
		if err != nil {
			return nil, fmt.Errorf("live: %w", err)
		}
		if patch, err = live.Merge(patch); err != nil {
			return nil, fmt.Errorf("merge: %w", err)
		}
	}
	return patch.AsValue().Unstructured(), nil
}

func patched(asked question) (any, error) {
	patch, err := jsonpatch.DecodePatch([]byte(*asked.JSON))
	if err != nil {
		return nil, err
	}
	result, err := patch.Apply(asked.Old)
	return json.RawMessage(result), err
}

// judge answers a panic as an error: patches of users bring some about.
func judge(asked question, converter managedfields.TypeConverter) (result any, err error) {
	defer func() {
		if fault := recover(); fault != nil {
			err = fmt.Errorf("panic: %v", fault)
		}
	}()
	switch {
	case asked.JSON != nil:
		return patched(asked)
	case len(asked.Apply) > 0:
		return applied(asked, converter)
	}
	return strategic(asked)
}

func main() {
	schemas := map[string]*spec.Schema{}
	for _, path := range os.Args[1:] {
		data, err := os.ReadFile(path)
		if err != nil {
			panic(err)
		}
		document := struct {
			Components struct {
				Schemas map[string]*spec.Schema `json:"schemas"`
			} `json:"components"`
		}{}
		if err := json.Unmarshal(data, &document); err != nil {
			panic(err)
		}
		for name, each := range document.Components.Schemas {
			schemas[name] = each
		}
	}
	converter, err := managedfields.NewTypeConverter(schemas, false)
	if err != nil {
		panic(err)
	}
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 64<<20)
	out := json.NewEncoder(os.Stdout)
	out.SetEscapeHTML(false)
	for lines.Scan() {
		asked := question{}
		if err := json.Unmarshal(lines.Bytes(), &asked); err != nil {
			panic(err)
		}
		result, err := judge(asked, converter)
		found := answer{Result: result}
		if err != nil {
			found = answer{Error: err.Error()}
		}
		if err := out.Encode(found); err != nil {
			panic(err)
		}
	}
}
