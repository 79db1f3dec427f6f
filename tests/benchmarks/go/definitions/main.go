// Answers what apiextensions-apiserver says of definitions: one JSON object on each line of standard input,
// {"definition": {...}, "old": {...}}, one answer on each line of standard output: the texts of a creation, or with
// "old" of an update of that, with the status that the apiserver gives both.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sort"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/install"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"
)

type question struct {
	Definition json.RawMessage `json:"definition"`
	Old        json.RawMessage `json:"old"`
}

type answer struct {
	Refused string   `json:"refused,omitempty"`
	Faults  []string `json:"faults,omitempty"`
}

var scheme = runtime.NewScheme()

func read(data []byte) (*apiextensions.CustomResourceDefinition, error) {
	external := &apiextensionsv1.CustomResourceDefinition{}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, external); err != nil {
		return nil, err
	}
	scheme.Default(external)
	found := &apiextensions.CustomResourceDefinition{}
	return found, scheme.Convert(external, found, nil)
}

func store(found *apiextensions.CustomResourceDefinition) {
	for _, version := range found.Spec.Versions {
		if version.Storage {
			if !apiextensions.IsStoredVersion(found, version.Name) {
				found.Status.StoredVersions = append(found.Status.StoredVersions, version.Name)
			}
			return
		}
	}
}

func ask(line []byte) (a answer) {
	defer func() {
		if found := recover(); found != nil {
			a = answer{Refused: fmt.Sprint("panic: ", found)}
		}
	}()
	var q question
	if err := json.Unmarshal(line, &q); err != nil {
		return answer{Refused: err.Error()}
	}
	found, err := read(q.Definition)
	if err != nil {
		return answer{Refused: err.Error()}
	}
	var faults field.ErrorList
	if len(q.Old) == 0 {
		found.Status = apiextensions.CustomResourceDefinitionStatus{}
		store(found)
		faults = validation.ValidateCustomResourceDefinition(context.Background(), found)
	} else {
		old, err := read(q.Old)
		if err != nil {
			return answer{Refused: err.Error()}
		}
		old.ResourceVersion, found.ResourceVersion = "1", "1"
		old.UID, found.UID = "u", "u"
		found.Status = *old.Status.DeepCopy()
		store(found)
		faults = validation.ValidateCustomResourceDefinitionUpdate(context.Background(), found, old)
	}
	for _, each := range faults {
		a.Faults = append(a.Faults, each.Error())
	}
	sort.Strings(a.Faults)
	return a
}

func main() {
	install.Install(scheme)
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(make([]byte, 1<<20), 1<<28)
	writer := bufio.NewWriter(os.Stdout)
	out := json.NewEncoder(writer)
	out.SetEscapeHTML(false)
	for in.Scan() {
		if err := out.Encode(ask(in.Bytes())); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		writer.Flush()
	}
}
