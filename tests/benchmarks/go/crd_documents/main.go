// Writes the documents that apiextensions-apiserver publishes of definitions: each line of standard input is a
// JSON array of CustomResourceDefinitions of one cluster, each line of standard output an object of their
// group-versions and documents.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/controller/openapi/builder"
	"k8s.io/kube-openapi/pkg/spec3"
)

func documents(line []byte) (map[string]*spec3.OpenAPI, error) {
	var definitions []*apiextensionsv1.CustomResourceDefinition
	if err := json.Unmarshal(line, &definitions); err != nil {
		return nil, err
	}
	parts := map[string][]*spec3.OpenAPI{}
	for _, definition := range definitions {
		apiextensionsv1.SetDefaults_CustomResourceDefinition(definition)
		apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&definition.Spec)
		definition.Status.AcceptedNames = definition.Spec.Names
		for _, version := range definition.Spec.Versions {
			if !version.Served {
				continue
			}
			document, err := builder.BuildOpenAPIV3(definition, version.Name, builder.Options{IncludeSelectableFields: true})
			if err != nil {
				return nil, err
			}
			name := "apis/" + definition.Spec.Group + "/" + version.Name
			parts[name] = append(parts[name], document)
		}
	}
	merged := map[string]*spec3.OpenAPI{}
	for name, each := range parts {
		document, err := builder.MergeSpecsV3(each...)
		if err != nil {
			return nil, err
		}
		merged[name] = document
	}
	return merged, nil
}

func main() {
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(make([]byte, 1<<20), 1<<28)
	out := json.NewEncoder(os.Stdout)
	out.SetEscapeHTML(false)
	for in.Scan() {
		found, err := documents(in.Bytes())
		if err == nil {
			err = out.Encode(found)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}
